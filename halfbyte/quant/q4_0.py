"""q4_0: 32 codes of 4 bits around 8, one scale."""

import numpy as np

from .bits import half, half_bytes, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .steps import codes, inverse, signed_step


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, 2:], 4, 16), 8), half(blocks, 0))


def _encode(values: Floats) -> Bytes:
    step = signed_step(values, 8)
    scale = half_bytes(step, "q4_0")
    q = codes(values * inverse(step), 8.5, 15)
    return np.concatenate([scale, pack(q, 4, 16)], axis=1)


Q4_0 = BlockFormat("q4_0", 2, 32, 18, planes=_planes, encode_blocks=_encode)
