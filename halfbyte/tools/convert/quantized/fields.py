"""`fields`: integers of a few bits, packed one after the other into little-endian words."""

from __future__ import annotations

import numpy as np

from ....quant.bits import unpack
from ....quant.block import Bytes


def fields(data: Bytes, bits: int) -> Bytes:
    """u8[n, k] to u8[n, k * 8 / bits], for 2, 3, 4 or 8 bits; the lowest come first, 3 bits run on across bytes."""
    if bits == 8:
        return data
    return unpack(data, bits, 1) if bits != 3 else _threes(data)


def _threes(data: Bytes) -> Bytes:
    n, k = data.shape
    parts = data.reshape(n, k // 3, 3).astype(np.uint32)
    eight = parts[:, :, 0] | parts[:, :, 1] << np.uint32(8) | parts[:, :, 2] << np.uint32(16)
    found = np.empty((n, k // 3, 8), np.uint8)
    for i in range(8):
        found[:, :, i] = eight >> np.uint32(3 * i) & np.uint32(7)
    return found.reshape(n, k // 3 * 8)
