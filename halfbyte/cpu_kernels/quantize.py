"""Activations to int8: groups of 32 columns, each with a record of its scale and of its sums."""

from __future__ import annotations

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_i64, store_float
from .ops import absolute, largest, load_f32, maximum, mul, nearest, same, store_i8, total

COUNT, X, QUANTIZED, SUMS, WIDTH, STRIDE, Q_STRIDE = LAYOUTS["quantize"].offsets()


@helper
def quantize_group(a, b, target, record):
    """Two vectors of 16 columns to 32 bytes and a record; the largest magnitude becomes 127."""
    peak = largest(maximum(absolute(a), absolute(b)))
    scale = peak / 127
    inverse = 127 / peak if peak > 0 else peak * 0
    a, b = nearest(mul(a, same(inverse))), nearest(mul(b, same(inverse)))
    store_i8(target, a)
    store_i8(target + 16, b)
    first, second = total(a), total(b)  # whole numbers: exact
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
        record = load_i64(instr + SUMS) + token * (q_stride // 2)
        for c in range(0, width, 32):
            quantize_group(load_f32(x + 4 * c), load_f32(x + 4 * c + 64), target + c, record + c // 2)


KERNELS = {"quantize": quantize}
