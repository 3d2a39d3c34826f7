"""q5_0: 32 codes of 5 bits around 16, the top bits apart, one scale."""

from functools import partial

import numpy as np

from .bits import half, half_bytes, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale
from .steps import codes, inverse, signed_step

_LEVELS = np.arange(-16, 16, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    q = join(unpack(blocks[:, 6:], 4, 16), unpack(blocks[:, 2:6], 1, 1), 4)
    return Planes(signed(q, 16), half(blocks, 0))


def _encode(values: Floats) -> Bytes:
    step = signed_step(values, 16)
    scale = half_bytes(step, "q5_0")
    q = codes(values * inverse(step), 16.5, 31)
    return np.concatenate([scale, pack(q >> np.uint8(4), 1, 1), pack(q & np.uint8(15), 4, 16)], axis=1)


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    high, low = pack(codes >> np.uint8(4), 1, 1), pack(codes & np.uint8(15), 4, 16)
    return np.concatenate([*fit.fields, high, low], axis=1)


_ENCODER = Encoder(partial(fit_scale, "q5_0", _LEVELS), _pack)
Q5_0 = BlockFormat("q5_0", 6, 32, 22, planes=_planes, encode_blocks=_encode, encoder=_ENCODER)
