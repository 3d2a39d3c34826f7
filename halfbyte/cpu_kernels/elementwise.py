"""Sums, products with a number, soft caps, what adapters add, copies of rows: what no neighbour takes along."""

from __future__ import annotations

from collections.abc import Callable

from . import math
from .instruction import LAYOUTS
from .instruction import state as word
from .jit import helper
from .memory import bits_to_float, load_float, load_i32, load_i64
from .ops import add, div, load_f32, mul, same
from .result import store_part

COUNT, A, B, B_STRIDE, FACTOR, OUT, WIDTH, STRIDE = LAYOUTS["elementwise"].offsets()
_, SCALES, ADDED, ADDED_STRIDE, ADDED_FACTOR, ADDED_OUT, ADDED_WIDTH, OUT_STRIDE = LAYOUTS["add_scaled"].offsets()
TAKE_X, TAKE_OUT, TAKE_WIDTH, TAKE_STRIDE, TAKE_OUT_STRIDE = LAYOUTS["take_rows"].offsets()
ROWS, LOGIT_ROWS = word("rows"), word("logit_rows")


@helper
def add_values(a, b, factor):
    """`a + b`."""
    return add(a, b)


@helper
def scale_value(a, b, factor):
    """`a * factor`."""
    return mul(a, factor)


@helper
def soft_cap(a, b, factor):
    """`factor * tanh(a / factor)`."""
    return mul(factor, math.tanh(div(a, factor)))


def _kernel(value: Callable[..., object]) -> Callable[..., None]:
    def elementwise(instr, state, tid, nth):
        width, stride = load_i64(instr + WIDTH), load_i64(instr + STRIDE)
        factor = same(bits_to_float(load_i64(instr + FACTOR)))
        for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
            a, out = load_i64(instr + A) + token * stride, load_i64(instr + OUT) + token * stride
            b = load_i64(instr + B) + token * load_i64(instr + B_STRIDE)
            for c in range(0, width, 16):
                store_part(out + 4 * c, value(load_f32(a + 4 * c), load_f32(b + 4 * c), factor), width - c)

    return elementwise


def add_scaled(instr, state, tid, nth):
    """`out[t] += scales[t] * factor * b[t]`; a row with scale 0 is not touched."""
    width = load_i64(instr + ADDED_WIDTH)
    for token in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        scale = load_float(load_i64(instr + SCALES) + 4 * token)
        if scale == 0:
            continue
        factor = same(scale * bits_to_float(load_i64(instr + ADDED_FACTOR)))
        out = load_i64(instr + ADDED_OUT) + token * load_i64(instr + OUT_STRIDE)
        b = load_i64(instr + ADDED) + token * load_i64(instr + ADDED_STRIDE)
        for c in range(0, width, 16):
            store_part(out + 4 * c, add(load_f32(out + 4 * c), mul(factor, load_f32(b + 4 * c))), width - c)


def take_rows(instr, state, tid, nth):
    """`out[r] = x[logit_rows[r]]`."""
    width, stride = load_i64(instr + TAKE_WIDTH), load_i64(instr + TAKE_STRIDE)
    for r in range(tid, load_i64(state + ROWS), nth):
        x = load_i64(instr + TAKE_X) + load_i32(load_i64(state + LOGIT_ROWS) + 4 * r) * stride
        out = load_i64(instr + TAKE_OUT) + r * load_i64(instr + TAKE_OUT_STRIDE)
        for c in range(0, width, 16):
            store_part(out + 4 * c, load_f32(x + 4 * c), width - c)


KERNELS = {
    "add": _kernel(add_values),
    "add_scaled": add_scaled,
    "scale": _kernel(scale_value),
    "softcap": _kernel(soft_cap),
    "take_rows": take_rows,
}
