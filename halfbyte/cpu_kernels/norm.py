"""Norms of rows or of heads, with the residual sum before them and the quantization behind them in one pass."""

from __future__ import annotations

import numpy as np

from .instruction import LAYOUTS
from .jit import helper
from .memory import bits_to_float, load_i64, sqrt
from .ops import add, first, fma, load_f32, mul, same, store_f32, sub, total
from .quantize import quantize_group
from .result import store_part

(
    COUNT, X, RESIDUAL, ADD_OUT, WEIGHT, BIAS, OUT, QUANTIZED, SUMS, WIDTH, GROUPS, EPS, STRIDE, OUT_STRIDE, Q_STRIDE,
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
    """Root mean square. Rows are dealt out in turn; `groups` heads a row share the weight."""
    width, stride = load_i64(instr + WIDTH), load_i64(instr + STRIDE)
    groups, weight = load_i64(instr + GROUPS), load_i64(instr + WEIGHT)
    out, quantized, eps = load_i64(instr + OUT), load_i64(instr + QUANTIZED), bits_to_float(load_i64(instr + EPS))
    for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        row = _add_residual(instr, token * stride, width * groups)
        for group in range(groups):
            x = row + 4 * width * group
            root = same(_inverse_root(x, width, eps))
            if out != 0:
                target = out + token * load_i64(instr + OUT_STRIDE) + 4 * width * group
                for c in range(0, width, 16):
                    normed = mul(mul(load_f32(x + 4 * c), root), load_f32(weight + 4 * c))
                    store_part(target + 4 * c, normed, width - c)
        if quantized != 0:
            target = quantized + token * load_i64(instr + Q_STRIDE)
            record = load_i64(instr + SUMS) + token * (load_i64(instr + Q_STRIDE) // 4)
            root = same(_inverse_root(row, width, eps))
            for c in range(0, width, 32):
                a = mul(mul(load_f32(row + 4 * c), root), load_f32(weight + 4 * c))
                b = mul(mul(load_f32(row + 4 * c + 64), root), load_f32(weight + 4 * c + 64))
                quantize_group(a, b, target + 2 * c, record + c // 2)


@helper
def _mean_of(x, width):
    sums = same(0.0)
    for c in range(0, width, 16):
        sums = add(sums, first(load_f32(x + 4 * c), width - c))
    return total(sums) / width_as_float(width)


@helper
def _inverse_deviation(x, width, mean, eps):
    """1 / sqrt(variance + eps), of numbers less their mean: the mean of squares may be much larger."""
    squares = same(0.0)
    for c in range(0, width, 16):
        v = first(sub(load_f32(x + 4 * c), same(mean)), width - c)
        squares = fma(v, v, squares)
    return 1 / sqrt(total(squares) / width_as_float(width) + eps)


@helper
def _centred(instr, x, mean, root, c):
    """16 columns from `c` on, normed."""
    v = mul(mul(sub(load_f32(x + 4 * c), same(mean)), same(root)), load_f32(load_i64(instr + WEIGHT) + 4 * c))
    bias = load_i64(instr + BIAS)
    return v if bias == 0 else add(v, load_f32(bias + 4 * c))


def layer_norm(instr, state, tid, nth):
    """Mean and variance of whole rows, which are dealt out in turn."""
    width, stride, eps = load_i64(instr + WIDTH), load_i64(instr + STRIDE), bits_to_float(load_i64(instr + EPS))
    out, quantized = load_i64(instr + OUT), load_i64(instr + QUANTIZED)
    for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        row = _add_residual(instr, token * stride, width)
        mean = _mean_of(row, width)
        root = _inverse_deviation(row, width, mean, eps)
        if out != 0:
            target = out + token * load_i64(instr + OUT_STRIDE)
            for c in range(0, width, 16):
                store_part(target + 4 * c, _centred(instr, row, mean, root, c), width - c)
        if quantized != 0:
            target = quantized + token * load_i64(instr + Q_STRIDE)
            record = load_i64(instr + SUMS) + token * (load_i64(instr + Q_STRIDE) // 4)
            for c in range(0, width, 32):
                a, b = _centred(instr, row, mean, root, c), _centred(instr, row, mean, root, c + 16)
                quantize_group(a, b, target + 2 * c, record + c // 2)


KERNELS = {"norm": norm, "layer_norm": layer_norm}
