"""q4_k: 256 codes of 4 bits; each 32 have a scale and a minimum of 6 bits, multiples of two halves."""

from functools import partial

import numpy as np

from .bits import half, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .k_fit import fit_counted_affine
from .k_scales import k_scales, pack_k_scales

_LEVELS = np.arange(16, dtype=np.int16)
_COUNTS = np.arange(64, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    scales, minima = k_scales(blocks[:, 4:16])
    q = signed(unpack(blocks[:, 16:], 4, 32), 0)
    return Planes(q, half(blocks, 0) * scales, -(half(blocks, 2) * minima))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, minimum_unit, scales, minima = fit.fields
    return np.concatenate([unit, minimum_unit, pack_k_scales(scales, minima), pack(codes, 4, 32)], axis=1)


_ENCODER = Encoder(partial(fit_counted_affine, "q4_k", _LEVELS, _COUNTS, 8), _pack)
Q4_K = BlockFormat("q4_k", 12, 256, 144, planes=_planes, encoder=_ENCODER)
