"""iq2_xs: 256 weights; each 8 are 9 bits into a grid and 7 sign bits, each 16 share a scale of 4 bits."""

import numpy as np

from .bits import even_flips, half, unpack
from .block import BlockFormat, Bytes, Planes
from .grids import IQ2_XS as GRID


def _planes(blocks: Bytes) -> Planes:
    codes = np.ascontiguousarray(blocks[:, 2:66]).view("<u2")
    signs = (codes >> np.uint16(9)).astype(np.uint8)
    q = GRID[codes & np.uint16(511)].reshape(len(blocks), 256) * even_flips(signs)
    scales = unpack(blocks[:, 66:], 4, 1) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.25))


IQ2_XS = BlockFormat("iq2_xs", 17, 256, 74, planes=_planes)
