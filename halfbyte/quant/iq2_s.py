"""iq2_s: 256 weights; each 8 are 10 bits into a grid and 8 sign bits, each 16 share a scale of 4 bits."""

import numpy as np

from .bits import flips, half, pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ2_S as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    codes = blocks[:, 2:34] | unpack(blocks[:, 66:74], 2, 1).astype(np.uint16) << np.uint16(8)
    q = GRID[codes].reshape(len(blocks), 256) * flips(blocks[:, 34:66])
    scales = unpack(blocks[:, 74:], 4, 1) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.25))


_FORM = GridBlock("iq2_s", groups=16, steps=16, unit=1 / 8, kinds=(Points(GRID),))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    low, high = chosen.codes.astype(np.uint8), (chosen.codes >> np.uint16(8)).astype(np.uint8)
    return np.concatenate([chosen.half, low, chosen.signs, pack(high, 2, 1), pack(chosen.scales, 4, 1)], axis=1)


IQ2_S = BlockFormat("iq2_s", 22, 256, 82, planes=_planes, encoder=Encoder(whole=_encode))
