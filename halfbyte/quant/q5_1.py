"""q5_1: 32 codes of 5 bits, the top bits apart, one scale, one minimum."""

import numpy as np

from .bits import half, half_bytes, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .steps import codes, inverse, span_step


def _planes(blocks: Bytes) -> Planes:
    q = join(unpack(blocks[:, 8:], 4, 16), unpack(blocks[:, 4:8], 1, 1), 4)
    return Planes(signed(q, 0), half(blocks, 0), half(blocks, 2))


def _encode(values: Floats) -> Bytes:
    step, low = span_step(values, 31)
    scales = [half_bytes(step, "q5_1"), half_bytes(low, "q5_1")]
    q = codes((values - low) * inverse(step), 0.5, 31)
    return np.concatenate([*scales, pack(q >> np.uint8(4), 1, 1), pack(q & np.uint8(15), 4, 16)], axis=1)


Q5_1 = BlockFormat("q5_1", 7, 32, 24, planes=_planes, encode_blocks=_encode)
