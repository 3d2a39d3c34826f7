"""q4_1: 32 codes of 4 bits, one scale, one minimum."""

import numpy as np

from .bits import half, half_bytes, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .steps import codes, inverse, span_step


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, 4:], 4, 16), 0), half(blocks, 0), half(blocks, 2))


def _encode(values: Floats) -> Bytes:
    step, low = span_step(values, 15)
    scales = [half_bytes(step, "q4_1"), half_bytes(low, "q4_1")]
    q = codes((values - low) * inverse(step), 0.5, 15)
    return np.concatenate([*scales, pack(q, 4, 16)], axis=1)


Q4_1 = BlockFormat("q4_1", 3, 32, 20, planes=_planes, encode_blocks=_encode)
