"""q4_0: 32 codes of 4 bits around 8, one scale."""

from functools import partial

import numpy as np

from .bits import half, half_bytes, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale
from .steps import codes, inverse, signed_step

_LEVELS = np.arange(-8, 8, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, 2:], 4, 16), 8), half(blocks, 0))


def _encode(values: Floats) -> Bytes:
    step = signed_step(values, 8)
    scale = half_bytes(step, "q4_0")
    q = codes(values * inverse(step), 8.5, 15)
    return np.concatenate([scale, pack(q, 4, 16)], axis=1)


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(codes, 4, 16)], axis=1)


_ENCODER = Encoder(partial(fit_scale, "q4_0", _LEVELS), _pack)
Q4_0 = BlockFormat("q4_0", 2, 32, 18, planes=_planes, encode_blocks=_encode, encoder=_ENCODER)
