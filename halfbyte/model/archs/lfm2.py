"""LFM2: most layers filter the last few tokens instead of attending to all; the others norm heads of queries and keys.

The norm before the head is called `token_embd_norm`, as it came to be in files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from ...formats import GGUFFile, Typed
from ..arch import Arch
from ..checkpoint import Checkpoint, TensorRule
from ..checkpoint_config import CheckpointConfig
from ..checkpoint_rope import rope_metadata
from ..decoder_checkpoint import UNUSED, block_count, decoder_metadata, rename
from ..layers import ProgramBuilder
from ..metadata import Metadata
from ..program import Program
from ..read_spec import read_spec
from ..spec import ModelSpec

_MAX_TAPS = 64
_ROPE_BASE = 1e6
_OUTPUT_NORM = "token_embd_norm"


def read(gguf: GGUFFile, metadata: Metadata) -> ModelSpec:
    """Layers without heads for keys and values filter."""
    spec = read_spec(gguf, metadata, rope="neox", fewest_kv_heads=0)
    taps = metadata.integer("shortconv.l_cache", low=2, high=_MAX_TAPS)
    layers = (layer if layer.n_head_kv else dataclasses.replace(layer, rope=None, taps=taps) for layer in spec.layers)
    return dataclasses.replace(spec, layers=tuple(layers))


def build(spec: ModelSpec, tensors: Collection[str]) -> Program:
    """One norm before either kind of layer."""
    b = ProgramBuilder(spec, tensors)
    x = b.embed()
    for i in b.layers():
        normed = b.norm(x, "attn_norm")
        if spec.layers[i].taps is None:
            attended, x = b.asked_rows(b.attention(normed, norm="heads"), x)
            part = b.linear(attended, "attn_output", spec.n_embd)
        else:
            filtered, x = b.asked_rows(b.short_conv(normed), x)
            part = b.linear(filtered, "shortconv.out_proj", spec.n_embd)
        x = b.add(x, part)
        x = b.add(x, b.feed_forward(b.norm(x, "ffn_norm")))
    return b.finish(x, norm=_OUTPUT_NORM)


def metadata(config: CheckpointConfig) -> dict[str, object]:
    """The width of a feed-forward follows from the config in several steps."""
    heads = config.integer("num_key_value_heads")
    return (
        decoder_metadata(config)
        | rope_metadata(config, base=_ROPE_BASE)
        | {
            "attention.head_count_kv": Typed([heads if attends else 0 for attends in _attention_layers(config)], "u32"),
            "attention.layer_norm_rms_epsilon": config.number("norm_eps", 1e-5),
            "feed_forward_length": _n_ff(config),
            "shortconv.l_cache": config.integer("conv_L_cache", 3, low=2, high=_MAX_TAPS),
        }
    )


def _attention_layers(config: CheckpointConfig) -> list[bool]:
    kinds = config.texts("layer_types")
    if kinds:
        return [kind == "full_attention" for kind in kinds]
    indices = config.integers("full_attn_idxs") if config.has("full_attn_idxs") else range(block_count(config))
    return [i in indices for i in range(block_count(config))]


def _n_ff(config: CheckpointConfig) -> int:
    width = config.integer("block_ff_dim", config.integer("intermediate_size", 1))
    if not config.flag("block_auto_adjust_ff_dim", True):
        return width
    multiple = config.integer("block_multiple_of", 256)
    width = int(config.number("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    return -(-width // multiple) * multiple


ATTENDING = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
}
FILTERING = {f"conv.{part}": f"shortconv.{part}" for part in ("in_proj", "conv", "out_proj")}
BOTH = {
    "operator_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down",
}


def tensors(config: CheckpointConfig) -> list[TensorRule]:
    """The embedding is the head, too, where there is none."""
    rules = [
        rename("model.embed_tokens.weight", "token_embd.weight"),
        rename("model.embedding_norm.weight", f"{_OUTPUT_NORM}.weight"),
        rename("lm_head.weight", "output.weight", optional=config.flag("tie_word_embeddings", True)),
    ]
    for i, attends in enumerate(_attention_layers(config)):
        for source, target in (BOTH | (ATTENDING if attends else FILTERING)).items():
            rules.append(rename(f"model.layers.{i}.{source}.weight", f"blk.{i}.{target}.weight"))
    return rules


LFM2 = Arch(read, build, Checkpoint(metadata, tensors, unused=UNUSED))
