"""mxfp4: 32 floats of 4 bits, one power of two (OCP microscaling, e8m0) as scale."""

import numpy as np

from .bits import unpack
from .block import BlockFormat, Bytes, Planes
from .e2m1 import E2M1

# 2^(e - 127), halved because E2M1 is doubled; 2^-128 and 2^-127 are subnormal in f32, and exact.
_SCALES = np.ldexp(np.float32(1), np.arange(256) - 128)


def _planes(blocks: Bytes) -> Planes:
    return Planes(E2M1[unpack(blocks[:, 1:], 4, 16)], _SCALES[blocks[:, :1]])


MXFP4 = BlockFormat("mxfp4", 39, 32, 17, planes=_planes)
