"""mxfp4: 32 floats of 4 bits, one power of two (OCP microscaling, e8m0) as scale."""

import numpy as np

from .bits import pack, unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .e2m1 import E2M1, E2M1_LEVELS, e2m1_nibbles
from .encoder import Encoder, Fit, Grid, Search
from .half_scale import counted
from .try_scales import least_error

# 2^(e - 127), halved because E2M1 is doubled; 2^-128 and 2^-127 are subnormal in f32, and exact.
_SCALES = np.ldexp(np.float32(1), np.arange(256) - 128)
_LAST = 252  # 12 times the next scale is infinite


def _planes(blocks: Bytes) -> Planes:
    return Planes(E2M1[unpack(blocks[:, 1:], 4, 16)], _SCALES[blocks[:, :1]])


def _fit(values: Floats, weights: Floats | None, search: Search) -> Fit:
    x, w = counted(values, weights, 32)
    scale = search.scale(x, w, E2M1_LEVELS)
    exponent = np.rint(np.log2(scale, out=np.full_like(scale, -128), where=scale > 0)).astype(np.int32)
    near = np.ldexp(x, -exponent[:, None])
    steps = [np.full_like(scale, step) for step in (1.0, 2.0, 0.5)]
    exponent += np.array([0, 1, -1], dtype=np.int32)[least_error(near, w, steps, E2M1_LEVELS, search)]
    field = np.clip(exponent + 128, 0, _LAST).astype(np.uint8)[:, None]
    return Fit(Grid(_SCALES[field], None, E2M1_LEVELS), (field,))


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    return np.concatenate([*fit.fields, pack(e2m1_nibbles(codes), 4, 16)], axis=1)


MXFP4 = BlockFormat("mxfp4", 39, 32, 17, planes=_planes, encoder=Encoder(_fit, _pack))
