"""iq2_xs: 256 weights; each 8 are 9 bits into a grid and 7 sign bits, each 16 share a scale of 4 bits."""

import numpy as np

from .bits import even_flips, half, pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ2_XS as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    codes = np.ascontiguousarray(blocks[:, 2:66]).view("<u2")
    signs = (codes >> np.uint16(9)).astype(np.uint8)
    q = GRID[codes & np.uint16(511)].reshape(len(blocks), 256) * even_flips(signs)
    scales = unpack(blocks[:, 66:], 4, 1) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.25))


_FORM = GridBlock("iq2_xs", groups=16, steps=16, unit=1 / 8, kinds=(Points(GRID, even=True),))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    codes = chosen.codes | chosen.even_signs.astype("<u2") << np.uint16(9)
    return np.concatenate([chosen.half, codes.view("u1"), pack(chosen.scales, 4, 1)], axis=1)


IQ2_XS = BlockFormat("iq2_xs", 17, 256, 74, planes=_planes, encoder=Encoder(whole=_encode))
