"""iq3_s: 256 weights; each 4 are 9 bits into a grid, each has a sign bit, each 32 share an odd scale of 5 bits."""

import numpy as np

from .bits import flips, half, pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ3_S as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    codes = blocks[:, 2:66] | unpack(blocks[:, 66:74], 1, 1).astype(np.uint16) << np.uint16(8)
    q = GRID[codes].reshape(len(blocks), 256) * flips(blocks[:, 74:106])
    scales = unpack(blocks[:, 106:], 4, 1) * np.uint8(2) + np.uint8(1)
    return Planes(q, half(blocks, 0) * scales)


_FORM = GridBlock("iq3_s", groups=8, steps=16, unit=1, kinds=(Points(GRID),))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    low, high = chosen.codes.astype(np.uint8), (chosen.codes >> np.uint16(8)).astype(np.uint8)
    return np.concatenate([chosen.half, low, pack(high, 1, 1), chosen.signs, pack(chosen.scales, 4, 1)], axis=1)


IQ3_S = BlockFormat("iq3_s", 21, 256, 110, planes=_planes, encoder=Encoder(whole=_encode))
