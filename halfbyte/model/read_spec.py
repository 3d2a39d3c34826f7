"""What every transformer's metadata says, and what an absent key means."""

from __future__ import annotations

import math
from typing import Literal

from ..errors import UnsupportedError
from ..formats import GGUFFile
from .metadata import Metadata
from .rope import Factors, read_rope
from .spec import Experts, LayerSpec, ModelSpec

TOKEN_EMBD = "token_embd.weight"
POSITION_EMBD = "position_embd.weight"
TOKEN_TYPES = "token_types.weight"
_MAX_LAYERS = 512
_MAX_WIDTH = 1 << 20
_MAX_HEAD_SIZE = 1 << 12


def read_spec(
    gguf: GGUFFile,
    metadata: Metadata,
    rope: Literal["norm", "neox"] | None,
    factors: Factors | None = None,
    experts: Experts | None = None,
    *,
    encoder: bool = False,
    fewest_kv_heads: int = 1,
) -> ModelSpec:
    """A spec whose layers are all alike but for head counts and widths; problems are left in `metadata`.

    `experts` are those of an architecture that may have some (`read_experts`). Raises `UnsupportedError` for experts
    of any other, and for attention that looks ahead where it should not or the other way round.
    """
    _refuse_what_we_lack(metadata, experts, encoder)
    n_layers = metadata.integer("block_count", high=_MAX_LAYERS)
    n_embd = metadata.integer("embedding_length", high=_MAX_WIDTH)
    heads = metadata.per_layer("attention.head_count", n_layers)
    kv_heads = metadata.per_layer("attention.head_count_kv", n_layers, heads, low=fewest_kv_heads)
    widths = metadata.per_layer("feed_forward_length", n_layers)
    _check_heads(metadata, heads, kv_heads)
    key_length, value_length = _read_head_sizes(metadata, n_embd, heads[0])
    table = None if rope is None else read_rope(metadata, rope, read_n_rot(metadata, key_length), factors)
    return ModelSpec(
        arch=metadata.arch,
        name=str(metadata.values.get("general.name", metadata.arch)),
        context_length=metadata.integer("context_length"),
        n_embd=n_embd,
        n_vocab=_read_n_vocab(gguf, metadata),
        key_length=key_length,
        value_length=value_length,
        norm_eps=metadata.number(f"attention.layer_norm_{'' if encoder else 'rms_'}epsilon", high=1.0),
        attention_scale=1 / math.sqrt(key_length),
        layers=tuple(LayerSpec(h, k, f, table) for h, k, f in zip(heads, kv_heads, widths, strict=True)),
        experts=experts,
        encoder=encoder,
    )


def _refuse_what_we_lack(metadata: Metadata, experts: Experts | None, encoder: bool) -> None:
    if experts is None and metadata.integer("expert_count", 0, low=0) > 0:
        raise UnsupportedError(f"{metadata.arch}.expert_count: this architecture with experts is not supported")
    if metadata.flag("attention.causal", not encoder) == encoder:
        looks = "does not look ahead, which encoders do" if encoder else "looks ahead, as only encoders may"
        raise UnsupportedError(f"{metadata.arch}.attention.causal: the model {looks}")


def _check_heads(metadata: Metadata, heads: tuple[int, ...], kv_heads: tuple[int, ...]) -> None:
    if metadata.sound("attention.head_count", "attention.head_count_kv"):
        odd = [(h, k) for h, k in zip(heads, kv_heads, strict=True) if k and h % k]
        if odd:
            key = f"{metadata.arch}.attention.head_count_kv"
            metadata.problem(key, f"is {odd[0][1]}, which does not divide the {odd[0][0]} heads")


def _read_head_sizes(metadata: Metadata, n_embd: int, n_head: int) -> tuple[int, int]:
    default = max(1, n_embd // n_head)
    keys = ("attention.key_length", "attention.value_length")
    absent = [key for key in keys if not metadata.has(key)]
    if absent and metadata.sound("embedding_length", "attention.head_count") and n_embd % n_head:
        metadata.problem(f"{metadata.arch}.{absent[0]}", f"is missing, and {n_head} heads do not divide {n_embd}")
    key_length, value_length = (metadata.integer(key, default, high=_MAX_HEAD_SIZE) for key in keys)
    return key_length, value_length


def read_n_rot(metadata: Metadata, key_length: int) -> int:
    """Channels of a head that turn."""
    key = "rope.dimension_count"
    n_rot = metadata.integer(key, key_length, high=_MAX_HEAD_SIZE)
    if metadata.sound(key, "embedding_length", "attention.head_count", "attention.key_length"):
        if n_rot % 2:
            metadata.problem(f"{metadata.arch}.{key}", f"is {n_rot}: channels turn in pairs")
        if n_rot > key_length:
            metadata.problem(f"{metadata.arch}.{key}", f"is {n_rot}, more than the {key_length} channels of a head")
    return n_rot


def _read_n_vocab(gguf: GGUFFile, metadata: Metadata) -> int:
    """Rows of the embedding: the file's list of tokens, or `vocab_size` where it has none, must agree."""
    tokens = metadata.values.get("tokenizer.ggml.tokens")
    key = f"{metadata.arch}.vocab_size" if tokens is None else "tokenizer.ggml.tokens"
    listed = len(tokens) if hasattr(tokens, "__len__") else metadata.integer("vocab_size", 0, low=0)
    embedding = gguf.tensors.get(TOKEN_EMBD)
    if embedding is None:
        return max(1, listed)
    if listed not in (0, embedding.rows):
        metadata.problem(key, f"counts {listed} tokens, but {TOKEN_EMBD} has {embedding.rows} rows")
    return embedding.rows
