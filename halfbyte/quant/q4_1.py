"""q4_1: 32 codes of 4 bits, one scale, one minimum."""

from functools import partial

import numpy as np

from .bits import half, half_bytes, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_affine
from .steps import codes, inverse, span_step

_LEVELS = np.arange(16, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    return Planes(signed(unpack(blocks[:, 4:], 4, 16), 0), half(blocks, 0), half(blocks, 2))


def _encode(values: Floats) -> Bytes:
    step, low = span_step(values, 15)
    scales = [half_bytes(step, "q4_1"), half_bytes(low, "q4_1")]
    q = codes((values - low) * inverse(step), 0.5, 15)
    return np.concatenate([*scales, pack(q, 4, 16)], axis=1)


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(codes, 4, 16)], axis=1)


_ENCODER = Encoder(partial(fit_affine, "q4_1", _LEVELS), _pack)
Q4_1 = BlockFormat("q4_1", 3, 32, 20, planes=_planes, encode_blocks=_encode, encoder=_ENCODER)
