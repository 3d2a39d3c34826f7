"""RMS norm of rows or of heads, with the residual sum before it and the quantization behind it in one pass."""

from __future__ import annotations

import numpy as np

from .instruction import LAYOUTS
from .jit import helper
from .memory import bits_to_float, load_i64, sqrt
from .ops import add, first, fma, load_f32, mul, same, store_f32, total
from .quantize import quantize_group

(
    COUNT, X, RESIDUAL, ADD_OUT, WEIGHT, OUT, QUANTIZED, SUMS, WIDTH, GROUPS, EPS, STRIDE, Q_STRIDE,
) = LAYOUTS["norm"].offsets()  # fmt: skip


@helper
def _add_residual(instr, offset, width):
    """Write `x + residual`; returns the address the norm reads from."""
    x, residual = load_i64(instr + X) + offset, load_i64(instr + RESIDUAL)
    if residual == 0:
        return x
    target = load_i64(instr + ADD_OUT) + offset
    for c in range(0, 4 * width, 64):
        store_f32(target + c, add(load_f32(x + c), load_f32(residual + offset + c)))
    return target


@helper
def _inverse_root(x, width, eps):
    """1 / sqrt(mean of squares + eps), summed in 16 lanes that are folded at the end."""
    squares = same(0.0)
    for c in range(0, width, 16):
        v = first(load_f32(x + 4 * c), width - c)
        squares = fma(v, v, squares)
    mean = total(squares) / width_as_float(width)
    return 1 / sqrt(mean + eps)


@helper
def width_as_float(width):
    """A float32 divisor: an integer one would make the division double."""
    return np.float32(width)


def norm(instr, state, tid, nth):
    """Rows are dealt out in turn; `groups` heads a row share the weight."""
    width, stride = load_i64(instr + WIDTH), load_i64(instr + STRIDE)
    groups, weight = load_i64(instr + GROUPS), load_i64(instr + WEIGHT)
    out, quantized, eps = load_i64(instr + OUT), load_i64(instr + QUANTIZED), bits_to_float(load_i64(instr + EPS))
    for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        row = _add_residual(instr, token * stride, width * groups)
        for group in range(groups):
            x = row + 4 * width * group
            root = same(_inverse_root(x, width, eps))
            if out != 0:
                target = out + token * stride + 4 * width * group
                for c in range(0, 4 * width, 64):
                    store_f32(target + c, mul(mul(load_f32(x + c), root), load_f32(weight + c)))
        if quantized != 0:
            target = quantized + token * load_i64(instr + Q_STRIDE)
            record = load_i64(instr + SUMS) + token * (load_i64(instr + Q_STRIDE) // 4)
            root = same(_inverse_root(row, width, eps))
            for c in range(0, width, 32):
                a = mul(mul(load_f32(row + 4 * c), root), load_f32(weight + 4 * c))
                b = mul(mul(load_f32(row + 4 * c + 64), root), load_f32(weight + 4 * c + 64))
                quantize_group(a, b, target + 2 * c, record + c // 2)


KERNELS = {"norm": norm}
