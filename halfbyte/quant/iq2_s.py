"""iq2_s: 256 weights; each 8 are 10 bits into a grid and 8 sign bits, each 16 share a scale of 4 bits."""

import numpy as np

from .bits import flips, half, unpack
from .block import BlockFormat, Bytes, Planes
from .grids import IQ2_S as GRID


def _planes(blocks: Bytes) -> Planes:
    codes = blocks[:, 2:34] | unpack(blocks[:, 66:74], 2, 1).astype(np.uint16) << np.uint16(8)
    q = GRID[codes].reshape(len(blocks), 256) * flips(blocks[:, 34:66])
    scales = unpack(blocks[:, 74:], 4, 1) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.25))


IQ2_S = BlockFormat("iq2_s", 22, 256, 82, planes=_planes)
