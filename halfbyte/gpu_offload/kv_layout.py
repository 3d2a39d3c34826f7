"""Where keys and values of a token lie in a page on the device.

A page has a part a KV layer for keys and one for values, each head after head. A head's part begins with the codes of
its 16 tokens, token after token, channels padded with zeros to a multiple of 8; scales of quantized types follow, of
each token one a block of 32 channels. `kernels/kv_types.cuh` says what codes are.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.kv_types import BLOCK, KvTypes
from ..model.program import KvLayer

PAGE_LEN = 16
"""Tokens of a page: what one matrix instruction takes of keys and of values."""
BITS = {"f32": 32, "f16": 16, "q8_0": 8, "q4_0": 4}
SCALED = ("q8_0", "q4_0")
CUDA_TYPES = {"f32": "KvF32", "f16": "KvF16", "q8_0": "KvQ8", "q4_0": "KvQ4"}
"""What the types are called in `kernels/kv_types.cuh`."""


def padded(size: int) -> int:
    """Channels that the codes of a head have room for."""
    return -(-size // 8) * 8


def head_bytes(kind: str, size: int) -> int:
    """Bytes of one head's keys, or values, in a page: a multiple of 16."""
    scales = 2 * -(-size // BLOCK) if kind in SCALED else 0
    return PAGE_LEN * (padded(size) * BITS[kind] // 8 + scales)


@dataclass(frozen=True)
class KvPlace:
    """Where a KV layer lies in each page: offsets of its keys and of its values, and their types."""

    keys: int
    values: int
    types: KvTypes


@dataclass(frozen=True)
class KvLayout:
    """Places of all KV layers in a page of `page_bytes`."""

    places: tuple[KvPlace, ...]
    page_bytes: int
    nowhere: KvPlace = KvPlace(0, 0, KvTypes())
    """For kernels that could store but have nothing to."""


def kv_layout(layers: tuple[KvLayer, ...], types: KvTypes) -> KvLayout:
    """Layer after layer, keys before values."""
    places, at = [], 0
    for layer in layers:
        own = types.of(layer)
        keys = layer.kv_heads * head_bytes(own.keys, layer.key_size)
        places.append(KvPlace(at, at + keys, own))
        at += keys + layer.kv_heads * head_bytes(own.values, layer.value_size)
    return KvLayout(tuple(places), at)
