"""Fields narrower than a byte, and half-precision scales, in and out of blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from .block import Bytes, Floats


def _shifts(width: int) -> Bytes:
    return np.arange(0, 8, width, dtype=np.uint8)[:, None]


def _split(data: Bytes, width: int, run: int) -> Bytes:
    n, k = data.shape
    fields = data.reshape(n, k // run, 1, run) >> _shifts(width)
    fields &= np.uint8((1 << width) - 1)
    return fields.reshape(n, k * 8 // width)


@cache
def _table(width: int) -> NDArray[Any]:
    """One word for each byte, whose bytes are the fields: a look-up beats shifting where fields stay neighbours."""
    return _split(np.arange(256, dtype=np.uint8)[:, None], width, 1).view(f"u{8 // width}")[:, 0]


def unpack(data: Bytes, width: int, run: int) -> Bytes:
    """u8[n, k] to u8[n, k * 8 / width]: from `run` bytes first all their lowest `width` bits, then all the next, ..."""
    if run == 1:
        return _table(width)[data].view(np.uint8)
    return _split(data, width, run)


def pack(fields: Bytes, width: int, run: int) -> Bytes:
    """The inverse of `unpack`; every field must fit `width` bits."""
    if width == run == 1:
        return np.packbits(fields, axis=1, bitorder="little")
    n, count = fields.shape
    k = count * width // 8
    parts = fields.reshape(n, k // run, 8 // width, run)
    packed = parts[:, :, 0].copy()
    for i in range(1, 8 // width):
        packed |= parts[:, :, i] << np.uint8(i * width)
    return packed.reshape(n, k)


def join(low: Bytes, high: Bytes, width: int) -> Bytes:
    """u8: the bits of `high` above `width` bits of `low`."""
    return low | high << np.uint8(width)


def half(blocks: Bytes, at: int) -> Floats:
    """f32[n, 1]: the half-precision number at byte `at` of each block."""
    return blocks[:, at : at + 2].view("<f2").astype(np.float32)


class BeyondHalf(ConfigError):
    """A scale of a block is more than half precision can hold."""

    def __init__(self, name: str, block: int, number: float):
        super().__init__(
            f"{name} cannot hold block {block}: its scale or minimum would be {number!r}, beyond "
            "the 65504 of half precision; check the weights for NaN, infinity and outliers, or keep them in bf16"
        )
        self.name, self.block, self.number = name, block, number

    def after(self, blocks: int) -> BeyondHalf:
        """The same where `blocks` come before those that were looked at."""
        return BeyondHalf(self.name, blocks + self.block, self.number)


def half_bytes(numbers: Floats, name: str) -> Bytes:
    """f32[n, 1] to u8[n, 2]; raises `BeyondHalf` for the first that half precision cannot hold.

    A NaN or infinity among the weights of a block makes its scale one too, so this is also where those are refused.
    """
    with np.errstate(over="ignore"):
        halves = numbers.astype("<f2")
    if not np.isfinite(halves).all():
        block = int(np.argmin(np.isfinite(halves)))
        raise BeyondHalf(name, block, float(numbers[block, 0]))
    return halves.view("u1")


_FLIPS = np.int16(1) - np.int16(2) * _split(np.arange(256, dtype=np.uint8)[:, None], 1, 1)


def flips(bits: Bytes) -> NDArray[np.int16]:
    """i16[n, k] of -1 where a bit of u8[n, k / 8] is set, lowest first, else 1."""
    return _FLIPS[bits].reshape(len(bits), -1)


def even_flips(bits: Bytes) -> NDArray[np.int16]:
    """As `flips`, from 7 bits a byte: the eighth makes the number of set bits even."""
    parity = bits ^ bits >> np.uint8(4)
    parity ^= parity >> np.uint8(2)
    parity ^= parity >> np.uint8(1)
    return flips(bits | (parity & np.uint8(1)) << np.uint8(7))


def signed(codes: Bytes, zero: int) -> NDArray[np.int16]:
    """i16: `codes - zero`."""
    return codes.astype(np.int16) - np.int16(zero)
