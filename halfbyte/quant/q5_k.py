"""q5_k: as q4_k with a fifth bit for each code, kept apart."""

from functools import partial

import numpy as np

from .bits import half, join, pack, signed, unpack
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .k_fit import fit_counted_affine
from .k_scales import k_scales, pack_k_scales

_LEVELS = np.arange(32, dtype=np.int16)
_COUNTS = np.arange(64, dtype=np.int16)


def _planes(blocks: Bytes) -> Planes:
    scales, minima = k_scales(blocks[:, 4:16])
    q = join(unpack(blocks[:, 48:], 4, 32), unpack(blocks[:, 16:48], 1, 32), 4)
    return Planes(signed(q, 0), half(blocks, 0) * scales, -(half(blocks, 2) * minima))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    unit, minimum_unit, scales, minima = fit.fields
    parts = [unit, minimum_unit, pack_k_scales(scales, minima)]
    return np.concatenate([*parts, pack(codes >> np.uint8(4), 1, 32), pack(codes & np.uint8(15), 4, 32)], axis=1)


_ENCODER = Encoder(partial(fit_counted_affine, "q5_k", _LEVELS, _COUNTS, 8), _pack)
Q5_K = BlockFormat("q5_k", 13, 256, 176, planes=_planes, encoder=_ENCODER)
