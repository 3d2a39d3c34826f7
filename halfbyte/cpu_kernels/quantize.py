"""Activations to 16-bit integers in two planes of bytes: groups of 32 columns, each with a record of scale and sums.

The products of bytes are what every CPU is fast at, and one plane of 8 bits is not enough: see
`docs/decisions/activations-in-two-planes.md`.
"""

from __future__ import annotations

import numpy as np

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_i64, store_float
from .ops import absolute, add, floor, largest, load_f32, maximum, mul, nearest, same, store_i8, sub, total

COUNT, X, QUANTIZED, SUMS, WIDTH, STRIDE, Q_STRIDE = LAYOUTS["quantize"].offsets()


LARGEST = np.float32(127 * 256)
"""What the largest magnitude of a group becomes: its upper byte is 127, its lower one 0."""
NOTHING = np.float32(1e-30)
"""Groups of smaller numbers become zeros: the inverse of their scale would be infinite."""


@helper
def _store_planes(v, target):
    """Whole numbers as upper and lower signed bytes: `v == 256 * upper + lower`."""
    upper = floor(mul(add(v, same(128.0)), same(1 / 256)))
    store_i8(target, upper)
    store_i8(target + 32, sub(v, mul(upper, same(256.0))))


@helper
def quantize_group(a, b, target, record):
    """Two vectors of 16 columns to 64 bytes and a record: scale, scaled sum, and those of the two halves."""
    peak = largest(maximum(absolute(a), absolute(b)))
    scale = peak / LARGEST
    inverse = LARGEST / peak if peak > NOTHING else np.float32(0)
    a, b = nearest(mul(a, same(inverse))), nearest(mul(b, same(inverse)))
    _store_planes(a, target)
    _store_planes(b, target + 16)
    first, second = total(a), total(b)  # whole numbers below 2^24: exact
    store_float(record, scale)
    store_float(record + 4, scale * (first + second))
    store_float(record + 8, scale * first)
    store_float(record + 12, scale * second)


def quantize(instr, state, tid, nth):
    """`quantized`, `sums` = the rows of x; rows are dealt out in turn."""
    width, stride, q_stride = load_i64(instr + WIDTH), load_i64(instr + STRIDE), load_i64(instr + Q_STRIDE)
    for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        x = load_i64(instr + X) + token * stride
        target = load_i64(instr + QUANTIZED) + token * q_stride
        record = load_i64(instr + SUMS) + token * (q_stride // 4)
        for c in range(0, width, 32):
            quantize_group(load_f32(x + 4 * c), load_f32(x + 4 * c + 64), target + 2 * c, record + c // 2)


KERNELS = {"quantize": quantize}
