"""The 4-bit float of mxfp4 and nvfp4: a sign, 2 exponent and 1 mantissa bit, doubled so that every value is whole."""

import numpy as np

from .block import Bytes

E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], dtype=np.int16)
E2M1_LEVELS = np.unique(E2M1)
_NIBBLES = np.array([np.argmax(level == E2M1) for level in E2M1_LEVELS], dtype=np.uint8)


def e2m1_nibbles(codes: Bytes) -> Bytes:
    """u8 of the same shape: from indices into `E2M1_LEVELS` to the bits of the float."""
    return _NIBBLES.take(codes, mode="clip")
