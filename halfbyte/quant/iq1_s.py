"""iq1_s: 256 weights; each 8 are 11 bits into a grid of -1, 0, 1, each 32 share an odd scale and a shift by 1/8."""

import numpy as np

from .bits import half
from .block import BlockFormat, Bytes, Planes
from .grids import IQ1 as GRID


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    high = np.ascontiguousarray(blocks[:, 34:]).view("<u2")
    top = (high[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)).reshape(n, 32)
    shift = np.where(high >> np.uint16(15), np.int16(-1), np.int16(1))
    # In eighths, so that the shift is whole; the scale takes the eighth, which is exact.
    q = GRID[blocks[:, 2:34] | top << np.uint16(8)].reshape(n, 8, 32) * np.int16(8) + shift[:, :, None]
    scales = (high >> np.uint16(12) & np.uint16(7)) * np.uint16(2) + np.uint16(1)
    return Planes(q.reshape(n, 256), half(blocks, 0) * scales * np.float32(0.125))


IQ1_S = BlockFormat("iq1_s", 19, 256, 50, planes=_planes)
