"""q5_1: 32 codes of 5 bits, the top bits apart, one scale, one minimum."""

from functools import partial

import numpy as np

from .bits import half, half_bytes, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_affine
from .steps import codes, inverse, span_step

_LEVELS = np.arange(32, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    q = join(unpack(blocks[:, 8:], 4, 16), unpack(blocks[:, 4:8], 1, 1), 4)
    return Planes(signed(q, 0), half(blocks, 0), half(blocks, 2))


def _encode(values: Floats) -> Bytes:
    step, low = span_step(values, 31)
    scales = [half_bytes(step, "q5_1"), half_bytes(low, "q5_1")]
    q = codes((values - low) * inverse(step), 0.5, 31)
    return np.concatenate([*scales, pack(q >> np.uint8(4), 1, 1), pack(q & np.uint8(15), 4, 16)], axis=1)


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    high, low = pack(codes >> np.uint8(4), 1, 1), pack(codes & np.uint8(15), 4, 16)
    return np.concatenate([*fit.fields, high, low], axis=1)


_ENCODER = Encoder(partial(fit_affine, "q5_1", _LEVELS), _pack)
Q5_1 = BlockFormat("q5_1", 7, 32, 24, planes=_planes, encode_blocks=_encode, encoder=_ENCODER)
