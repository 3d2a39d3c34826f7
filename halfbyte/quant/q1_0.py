"""q1_0: 128 signs, one scale."""

from functools import partial

import numpy as np

from .bits import flips, half, pack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale

_LEVELS = np.array([-1, 1], dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    return Planes(-flips(blocks[:, 2:]), half(blocks, 0))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(codes, 1, 1)], axis=1)


_ENCODER = Encoder(partial(fit_scale, "q1_0", _LEVELS), _pack)
Q1_0 = BlockFormat("q1_0", 41, 128, 18, planes=_planes, encoder=_ENCODER)
