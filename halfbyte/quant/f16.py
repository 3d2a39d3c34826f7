"""f16: IEEE half precision. Encoding rounds to nearest even; beyond 65504 it gives infinity."""

import numpy as np

from .block import BlockFormat, Bytes, Floats

_EXPONENT = np.uint16(0x7C00)
_KEPT = np.int32(-0x70002000)
"""Sign, exponent and mantissa of a half that was shifted to those of a single: 0x8fffe000."""
_REBIAS = np.float32(2.0**112)
_CACHED = 2**16
"""Halves at a time that stay in a core's cache."""


def _decode(blocks: Bytes) -> Floats:
    halves = blocks.reshape(-1).view("<u2")
    out = np.empty(halves.shape, np.float32)
    for start in range(0, len(halves), _CACHED):
        part = halves[start : start + _CACHED]
        if ((part & _EXPONENT) == _EXPONENT).any():  # infinity or NaN
            out[start : start + len(part)] = part.view("<f2")
        else:
            _decode_finite(part, out[start : start + len(part)])
    return out


def _decode_finite(halves: np.ndarray, out: Floats) -> None:
    """Bits moved to their places; the product gives the exponent its bias, and subnormal numbers theirs."""
    bits = out.view(np.int32)
    bits[:] = halves.view("<i2")
    bits <<= 13
    bits &= _KEPT
    out *= _REBIAS


def _encode(values: Floats) -> Bytes:
    with np.errstate(over="ignore"):
        return values.astype("<f2").view("u1")


F16 = BlockFormat("f16", 1, 1, 2, decode_blocks=_decode, encode_blocks=_encode)
