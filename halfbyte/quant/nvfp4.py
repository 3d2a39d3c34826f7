"""nvfp4: 64 floats of 4 bits; each 16 have an unsigned 8-bit float (4 exponent, 3 mantissa bits) as scale."""

import numpy as np

from .bits import unpack
from .block import BlockFormat, Bytes, Floats, Planes
from .e2m1 import E2M1


def _scales() -> Floats:
    """f32[256]: what a scale byte means, halved because E2M1 is doubled; the top bit is ignored, 0x7F means zero."""
    exponent, mantissa = np.divmod(np.arange(256) & 127, 8)
    whole = np.where(exponent == 0, mantissa, mantissa + 8)
    values: Floats = np.ldexp(whole.astype(np.float32), np.maximum(exponent, 1) - 11)
    values[0x7F] = 0
    return values


_SCALES = _scales()


def _planes(blocks: Bytes) -> Planes:
    return Planes(E2M1[unpack(blocks[:, 4:], 4, 8)], _SCALES[blocks[:, :4]])


NVFP4 = BlockFormat("nvfp4", 40, 64, 36, planes=_planes)
