"""iq3_xxs: 256 weights; each 4 are a byte into a grid, each 8 have 7 sign bits, each 32 a scale of 4 bits."""

import numpy as np

from .bits import even_flips, half
from .block import BlockFormat, Bytes, Planes
from .grids import IQ3_XXS as GRID


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    packed = np.ascontiguousarray(blocks[:, 66:]).view("<u4")
    signs = (packed[:, :, None] >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)).astype(np.uint8)
    q = GRID[blocks[:, 2:66]].reshape(n, 256) * even_flips(signs.reshape(n, 32))
    scales = (packed >> np.uint32(28)).astype(np.float32) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.5))


IQ3_XXS = BlockFormat("iq3_xxs", 18, 256, 98, planes=_planes)
