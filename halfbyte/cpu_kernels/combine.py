"""From rows of experts back to rows of tokens: sums, in ascending order of the experts."""

from __future__ import annotations

from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_float, load_i32, load_i64
from .ops import add, load_f32, mul, same, store_f32

COUNT, X, ROUTE, PLACES, USED, OUT, WIDTH, STRIDE, ROUTE_STRIDE = LAYOUTS["combine"].offsets()
SPAN = 256
"""Columns a thread takes at a time: a single token's row is shared by all threads."""


@helper
def _span(instr, token, begin, end):
    used, stride = load_i64(instr + USED), load_i64(instr + STRIDE)
    places = load_i64(instr + PLACES) + 4 * used * token
    weights = load_i64(instr + ROUTE) + token * load_i64(instr + ROUTE_STRIDE) + 4 * used
    for c in range(4 * begin, 4 * end, 64):
        sums = same(0.0)
        for j in range(used):
            row = load_i64(instr + X) + load_i32(places + 4 * j) * stride
            sums = add(sums, mul(same(load_float(weights + 4 * j)), load_f32(row + c)))
        store_f32(load_i64(instr + OUT) + token * stride + c, sums)


def combine(instr, state, tid, nth):
    """`out[t]` is the sum of the rows of token t, each times its weight."""
    width = load_i64(instr + WIDTH)
    spans = (width + SPAN - 1) // SPAN
    units = spans * load_i64(load_i64(instr + COUNT))
    while True:
        unit = atomic_add(instr + COUNTER, 1)
        if unit >= units:
            break
        begin = (unit % spans) * SPAN
        _span(instr, unit // spans, begin, min(begin + SPAN, width))


KERNELS = {"combine": combine}
