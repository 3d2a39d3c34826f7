"""iq1_m: as iq1_s, with a shift for each 8 and an odd scale for each 16; the half is spread over the scales' words."""

import numpy as np

from .bits import pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ1 as GRID
from .points import Points


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


_POINTS = Points(np.concatenate([GRID * np.int16(8) + np.int16(1), GRID * np.int16(8) - np.int16(1)]))
"""A code and, above it, the bit of its shift."""
_FORM = GridBlock("iq1_m", groups=16, steps=8, unit=1 / 8, kinds=(_POINTS,))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    codes = chosen.codes & np.uint16(2047)
    high = (codes >> np.uint16(8) | chosen.codes >> np.uint16(11) << np.uint16(3)).astype(np.uint8)
    threes = chosen.scales.reshape(-1, 4, 4).astype("<u2") << np.arange(0, 12, 3, dtype=np.uint16)
    nibbles = chosen.half.view("<u2") >> np.arange(0, 16, 4, dtype=np.uint16) << np.uint16(12)
    words = np.bitwise_or.reduce(threes, axis=2) | nibbles
    return np.concatenate([codes.astype(np.uint8), pack(high, 4, 1), words.view("u1")], axis=1)


IQ1_M = BlockFormat("iq1_m", 29, 256, 56, planes=_planes, encoder=Encoder(whole=_encode))
