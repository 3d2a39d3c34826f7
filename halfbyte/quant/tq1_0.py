"""tq1_0: 256 of -1, 0, 1, five a byte (four in the last 4 bytes) as base-3 digits of a fraction of 256; one scale."""

import numpy as np

from .bits import half, signed
from .block import BlockFormat, Bytes, Planes


def _digits(data: Bytes, count: int, run: int) -> Bytes:
    """u8[n, k] to u8[n, k * count]: from `run` bytes all first digits, then all second ones, ..."""
    powers = np.array([1, 3, 9, 27, 81], dtype=np.uint8)[:count, None]
    # The product wraps at 256 on purpose: what is left is the fraction behind the digits already taken.
    rest = data.reshape(len(data), -1, 1, run) * powers
    return (rest.astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(data), -1)


def _planes(blocks: Bytes) -> Planes:
    parts = [_digits(blocks[:, :32], 5, 32), _digits(blocks[:, 32:48], 5, 16), _digits(blocks[:, 48:52], 4, 4)]
    return Planes(signed(np.concatenate(parts, axis=1), 1), half(blocks, 52))


TQ1_0 = BlockFormat("tq1_0", 34, 256, 54, planes=_planes)
