"""q8_0: 32 signed bytes, one scale."""

import numpy as np

from .bits import half, half_bytes
from .block import BlockFormat, Bytes, Floats, Planes
from .steps import inverse


def _planes(blocks: Bytes) -> Planes:
    return Planes(blocks[:, 2:].view(np.int8).astype(np.int16), half(blocks, 0))


def _encode(values: Floats) -> Bytes:
    step = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    scale = half_bytes(step, "q8_0")
    steps = values * inverse(step)
    whole = np.trunc(steps)
    # Half a step rounds away from zero; adding 0.5 first would round a step of 0.49999997 up.
    q = whole + np.trunc(np.float32(2) * (steps - whole))
    return np.concatenate([scale, q.astype(np.int8).view(np.uint8)], axis=1)


Q8_0 = BlockFormat("q8_0", 8, 32, 34, planes=_planes, encode_blocks=_encode)
