"""iq1_s: 256 weights; each 8 are 11 bits into a grid of -1, 0, 1, each 32 share an odd scale and a shift by 1/8."""

import numpy as np

from .bits import half
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ1 as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    high = np.ascontiguousarray(blocks[:, 34:]).view("<u2")
    top = (high[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)).reshape(n, 32)
    shift = np.where(high >> np.uint16(15), np.int16(-1), np.int16(1))
    # In eighths, so that the shift is whole; the scale takes the eighth, which is exact.
    q = GRID[blocks[:, 2:34] | top << np.uint16(8)].reshape(n, 8, 32) * np.int16(8) + shift[:, :, None]
    scales = (high >> np.uint16(12) & np.uint16(7)) * np.uint16(2) + np.uint16(1)
    return Planes(q.reshape(n, 256), half(blocks, 0) * scales * np.float32(0.125))


_POINTS = (Points(GRID * np.int16(8) + np.int16(1)), Points(GRID * np.int16(8) - np.int16(1)))
_FORM = GridBlock("iq1_s", groups=8, steps=8, unit=1 / 8, kinds=_POINTS)


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    top = (chosen.codes >> np.uint16(8)).reshape(-1, 8, 4) << np.arange(0, 12, 3, dtype=np.uint16)
    high = np.bitwise_or.reduce(top, axis=2) | chosen.scales.astype("<u2") << np.uint16(12)
    high |= chosen.kinds.astype("<u2") << np.uint16(15)
    return np.concatenate([chosen.half, chosen.codes.astype(np.uint8), high.view("u1")], axis=1)


IQ1_S = BlockFormat("iq1_s", 19, 256, 50, planes=_planes, encoder=Encoder(whole=_encode))
