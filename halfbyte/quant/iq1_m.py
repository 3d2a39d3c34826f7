"""iq1_m: as iq1_s, with a shift for each 8 and an odd scale for each 16; the half is spread over the scales' words."""

import numpy as np

from .bits import unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .grids import IQ1 as GRID


def _scales(blocks: Bytes) -> Floats:
    """f32[n, 16]: each of four words holds four scales of 3 bits and, on top, 4 bits of the half, lowest first."""
    words = np.ascontiguousarray(blocks[:, 48:]).view("<u2")
    nibbles = (words >> np.uint16(12)) << np.arange(0, 16, 4, dtype=np.uint16)
    whole = np.bitwise_or.reduce(nibbles, axis=1, keepdims=True).view(np.float16).astype(np.float32)
    threes = words[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)
    scales: Floats = whole * (threes.reshape(-1, 16) * np.uint16(2) + np.uint16(1))
    return scales


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    high = unpack(blocks[:, 32:48], 4, 1)
    codes = blocks[:, :32] | (high & np.uint8(7)).astype(np.uint16) << np.uint16(8)
    shift = np.where(high >> np.uint8(3), np.int16(-1), np.int16(1))
    # In eighths, as in iq1_s.
    q = GRID[codes] * np.int16(8) + shift[:, :, None]
    return Planes(q.reshape(n, 256), _scales(blocks) * np.float32(0.125))


IQ1_M = BlockFormat("iq1_m", 29, 256, 56, planes=_planes)
