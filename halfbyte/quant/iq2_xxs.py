"""iq2_xxs: 256 weights; each 8 are a byte into a grid and 7 sign bits, each 32 share a scale of 4 bits."""

import numpy as np

from .bits import even_flips, half
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Search
from .grid_block import GridBlock
from .grids import IQ2_XXS as GRID
from .points import Points


def _planes(blocks: Bytes) -> Planes:
    n = len(blocks)
    words = blocks[:, 2:].reshape(n, 8, 8)
    packed = np.ascontiguousarray(words[:, :, 4:]).view("<u4")
    signs = (packed >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)).astype(np.uint8)
    q = GRID[words[:, :, :4]].reshape(n, 256) * even_flips(signs.reshape(n, 32))
    scales = (packed[:, :, 0] >> np.uint32(28)).astype(np.float32) + np.float32(0.5)
    return Planes(q, half(blocks, 0) * scales * np.float32(0.25))


_FORM = GridBlock("iq2_xxs", groups=8, steps=16, unit=1 / 8, kinds=(Points(GRID, even=True),))


def _encode(values: Floats, weights: Floats | None, search: Search) -> Bytes:
    chosen = _FORM.choose(values, weights, search)
    packed = chosen.even_signs.reshape(-1, 8, 4).astype("<u4") << np.arange(0, 28, 7, dtype=np.uint32)
    packed = np.bitwise_or.reduce(packed, axis=2) | chosen.scales.astype("<u4") << np.uint32(28)
    words = [chosen.codes.astype(np.uint8).reshape(-1, 8, 4), packed.view("u1").reshape(-1, 8, 4)]
    return np.concatenate([chosen.half, np.concatenate(words, axis=2).reshape(-1, 64)], axis=1)


IQ2_XXS = BlockFormat("iq2_xxs", 16, 256, 66, planes=_planes, encoder=Encoder(whole=_encode))
