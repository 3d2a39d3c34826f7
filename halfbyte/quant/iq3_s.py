"""iq3_s: 256 weights; each 4 are 9 bits into a grid, each has a sign bit, each 32 share an odd scale of 5 bits."""

import numpy as np

from .bits import flips, half, unpack
from .block import BlockFormat, Bytes, Planes
from .grids import IQ3_S as GRID


def _planes(blocks: Bytes) -> Planes:
    codes = blocks[:, 2:66] | unpack(blocks[:, 66:74], 1, 1).astype(np.uint16) << np.uint16(8)
    q = GRID[codes].reshape(len(blocks), 256) * flips(blocks[:, 74:106])
    scales = unpack(blocks[:, 106:], 4, 1) * np.uint8(2) + np.uint8(1)
    return Planes(q, half(blocks, 0) * scales)


IQ3_S = BlockFormat("iq3_s", 21, 256, 110, planes=_planes)
