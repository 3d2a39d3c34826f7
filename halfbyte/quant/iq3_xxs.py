"""iq3_xxs: 256 weights; each 4 are a byte into a grid, each 8 have 7 sign bits, each 32 a scale of 4 bits."""

import numpy as np

from .bits import even_flips, half
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ3_XXS as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    packed = np.ascontiguousarray(blocks[:, 66:]).view("<u4")
    signs = (packed[:, :, None] >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)).astype(np.uint8)
    q = GRID[blocks[:, 2:66]].reshape(n, 256) * even_flips(signs.reshape(n, 32))
    scales = (packed >> np.uint32(28)).astype(np.float32) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.5))


_FORM = GridBlock("iq3_xxs", groups=8, steps=16, unit=1 / 4, kinds=(Points(GRID, even=True),))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    packed = chosen.even_signs.reshape(-1, 8, 4).astype("<u4") << np.arange(0, 28, 7, dtype=np.uint32)
    packed = np.bitwise_or.reduce(packed, axis=2) | chosen.scales.astype("<u4") << np.uint32(28)
    return np.concatenate([chosen.half, chosen.codes.astype(np.uint8), packed.view("u1")], axis=1)


IQ3_XXS = BlockFormat("iq3_xxs", 18, 256, 98, planes=_planes, encoder=Encoder(whole=_encode))
