"""q2_k: 256 codes of 2 bits; each 16 have a scale and a minimum of 4 bits, multiples of two halves."""

from functools import partial

import numpy as np

from .bits import half, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .k_fit import fit_counted_affine

_LEVELS = np.arange(4, dtype=np.int16)
_COUNTS = np.arange(16, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    scales = blocks[:, :16]
    q = signed(unpack(blocks[:, 16:80], 2, 32), 0)
    return Planes(q, half(blocks, 80) * (scales & 15), -(half(blocks, 82) * (scales >> 4)))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, minimum_unit, scales, minima = fit.fields
    return np.concatenate([join(scales, minima, 4), pack(codes, 2, 32), unit, minimum_unit], axis=1)


_ENCODER = Encoder(partial(fit_counted_affine, "q2_k", _LEVELS, _COUNTS, 16), _pack)
Q2_K = BlockFormat("q2_k", 10, 256, 84, planes=_planes, encoder=_ENCODER)
