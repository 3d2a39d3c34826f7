"""tq1_0: 256 of -1, 0, 1, five a byte (four in the last 4 bytes) as base-3 digits of a fraction of 256; one scale."""

from functools import partial

import numpy as np

from .bits import half, signed
from .block import BlockFormat, Bytes, Planes
from .encoder import Encoder, Fit
from .half_scale import fit_scale

_LEVELS = np.arange(-1, 2, dtype=np.int16)


def _digits(data: Bytes, count: int, run: int) -> Bytes:
    """u8[n, k] to u8[n, k * count]: from `run` bytes all first digits, then all second ones, ..."""
    powers = np.array([1, 3, 9, 27, 81], dtype=np.uint8)[:count, None]
    # The product wraps at 256 on purpose: what is left is the fraction behind the digits already taken.
    rest = data.reshape(len(data), -1, 1, run) * powers
    return (rest.astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(data), -1)


def _planes(blocks: Bytes) -> Planes:
    parts = [_digits(blocks[:, :32], 5, 32), _digits(blocks[:, 32:48], 5, 16), _digits(blocks[:, 48:52], 4, 4)]
    return Planes(signed(np.concatenate(parts, axis=1), 1), half(blocks, 52))


def _fraction(codes: Bytes, count: int, run: int) -> Bytes:
    """The inverse of `_digits`."""
    powers = np.array([81, 27, 9, 3, 1], dtype=np.uint16)[:count, None]
    digits = codes.reshape(len(codes), -1, count, run)
    # Rounded up, so that cutting the fraction off gives the digits back.
    fraction = (np.add.reduce(digits * powers, axis=2, dtype=np.uint16) * 256 + 242) // 243
    packed: Bytes = fraction.astype(np.uint8)
    return packed.reshape(len(codes), -1)


def _pack(fit: Fit, codes: Bytes) -> Bytes:
    parts = [_fraction(codes[:, :160], 5, 32), _fraction(codes[:, 160:240], 5, 16), _fraction(codes[:, 240:], 4, 4)]
    return np.concatenate([*parts, *fit.fields], axis=1)


_ENCODER = Encoder(partial(fit_scale, "tq1_0", _LEVELS), _pack)
TQ1_0 = BlockFormat("tq1_0", 34, 256, 54, planes=_planes, encoder=_ENCODER)
