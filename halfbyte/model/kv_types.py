"""`KvTypes`: how keys and values are kept, and what a number becomes that is kept so.

Quantized types take blocks of 32 channels of one token under one head, the last block of a head shorter: a scale, a
half, and a whole number for each channel. What is kept stands for `scale * number`, which float32 holds exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedError
from .program import KvLayer

BLOCK = 32
"""Channels that share a scale."""
Floats = NDArray[np.float32]


def _f32(x: Floats) -> Floats:
    return x


def _f16(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def _q8_0(x: Floats) -> Floats:
    largest = np.abs(x).max(axis=-1, keepdims=True)
    return _on_grid(x, largest / np.float32(127), -127, 127)


def _q4_0(x: Floats) -> Floats:
    top, bottom = x.max(axis=-1, keepdims=True), x.min(axis=-1, keepdims=True)
    return _on_grid(x, np.where(top > -bottom, top, bottom) / np.float32(-8), -8, 7)


def _on_grid(x: Floats, scale: Floats, low: int, high: int) -> Floats:
    scale = _f16(scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = np.clip(np.rint(x / scale), low, high)
    return np.where(scale == 0, np.float32(0), scale * numbers)


ROUND: dict[str, Callable[[Floats], Floats]] = {"f16": _f16, "q8_0": _q8_0, "q4_0": _q4_0, "f32": _f32}
"""What a block f32[..., 32] or fewer becomes."""
KV_TYPES = tuple(ROUND)


def rounded(kind: str, x: Floats) -> Floats:
    """f32[..., C] as a store of type `kind` gives it back."""
    if x.shape[-1] == 0:
        return x
    blocks = [ROUND[kind](x[..., i : i + BLOCK]) for i in range(0, x.shape[-1], BLOCK)]
    return np.concatenate(blocks, axis=-1)


@dataclass(frozen=True)
class KvTypes:
    """The type of the keys and that of the values."""

    keys: str = "f16"
    values: str = "f16"

    @property
    def name(self) -> str:
        """What `kv_types` makes these of."""
        return self.keys if self.keys == self.values else f"{self.keys}/{self.values}"

    def of(self, layer: KvLayer) -> KvTypes:
        """Those of one layer."""
        if not layer.exact:
            return self
        return KvTypes(*(kind if kind in ("f32", "f16") else "f16" for kind in (self.keys, self.values)))

    def token_bytes(self, key_size: int, value_size: int) -> int:
        """Bytes of a token under one head."""
        return _bytes_of(self.keys, key_size) + _bytes_of(self.values, value_size)


def _bytes_of(kind: str, size: int) -> int:
    scales = 2 * -(-size // BLOCK)
    return {"f32": 4 * size, "f16": 2 * size, "q8_0": size + scales, "q4_0": -(-size // 2) + scales}[kind]


def kv_types(name: str) -> KvTypes:
    """From "q8_0", which means both, or "q8_0/q4_0", keys and values; raises `UnsupportedError` for other names."""
    keys, slash, values = name.partition("/")
    types = KvTypes(keys, values if slash else keys)
    if types.keys not in KV_TYPES or types.values not in KV_TYPES:
        raise UnsupportedError(f"kv={name!r} is no type of KV store, nor two with a / between", known=KV_TYPES)
    return types
