"""`ModelSpec`: what a model is, read once from its metadata and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .program import Gate, RopeTable


@dataclass(frozen=True)
class LayerSpec:
    """What may differ from layer to layer; `window` as in `Attention`, None where a token sees all before it.

    `rope` None: heads know nothing of positions. `taps`: a `ShortConv` of so many stands in place of attention.
    """

    n_head: int
    n_head_kv: int
    n_ff: int
    rope: RopeTable | None
    window: int | None = None
    taps: int | None = None


@dataclass(frozen=True)
class Experts:
    """`used` of `count` feed-forwards of width `n_ff` see each token; the others as in `MoeRoute`."""

    count: int
    used: int
    n_ff: int
    gate: Literal["softmax", "sigmoid"] = "softmax"
    normalise: bool = True
    scale: float = 1.0


@dataclass(frozen=True)
class ModelSpec:
    """Sizes and choices of one model, named as in GGUF.

    In shapes `n_embd` is D, `n_vocab` V, `key_length` C, and of a layer `n_head` H, `n_head_kv` K, `n_ff` F.
    `context_length` counts the tokens the model was trained to see. `final_softcap` None means that logits stay as
    they are, `attention_softcap` None that scores do. What a layer adds is multiplied by `residual_scale`, the logits
    by `logit_scale`.
    """

    arch: str
    name: str
    context_length: int
    n_embd: int
    n_vocab: int
    key_length: int
    value_length: int
    norm_eps: float
    attention_scale: float
    layers: tuple[LayerSpec, ...]
    embedding_scale: float = 1.0
    act: Gate = "silu"
    final_softcap: float | None = None
    attention_softcap: float | None = None
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    experts: Experts | None = None
    encoder: bool = False

    @property
    def n_layers(self) -> int:
        """Transformer layers."""
        return len(self.layers)
