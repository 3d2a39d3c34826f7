"""q8_0: 32 signed bytes, one scale."""

from functools import partial

import numpy as np

from .bits import half, half_bytes
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale
from .steps import inverse

_LEVELS = np.arange(-128, 128, dtype=np.int16)


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


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    # Counted from -128, a byte and its two's complement differ in the top bit alone.
    return np.concatenate([*fit.fields, codes ^ np.uint8(128)], axis=1)


_ENCODER = Encoder(partial(fit_scale, "q8_0", _LEVELS), _pack)
Q8_0 = BlockFormat("q8_0", 8, 32, 34, planes=_planes, encode_blocks=_encode, encoder=_ENCODER)
