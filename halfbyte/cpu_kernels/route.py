"""The choice of experts for each token, and the order in which their rows will lie.

Rows are sorted by expert, then by token, so that an expert's matrices are read once for all of its tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import math
from .dealing import ACTIVE, DEALT, MOST, RECORD, RECORDS
from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, bits_to_float, load_float, load_i32, load_i64, store_float, store_i64, store_u32
from .ops import add, div, first, load_f32, mul, same, store_f32, sub, total
from .top_k import ascend, best_of

(
    COUNT, X, OUT, USED, EXPERTS, NORMALISE, SCALE, STRIDE, OUT_STRIDE, ORDER, COUNTERS, SOURCES, PLACES,
) = LAYOUTS["route"].offsets()  # fmt: skip
LOWEST, ONE = np.float32(-np.inf), np.float32(1)


@helper
def _choose(x, experts, used, ids, values):
    """The numbers of the best scores, ascending; what is no number comes last, as in a sort."""
    kept = best_of(x, experts, used, ids, values)
    for numbers in (True, False):
        for i in range(experts if kept < used else 0):
            score = load_float(x + 4 * i)
            if kept < used and not score > LOWEST and (score == LOWEST) == numbers:
                store_u32(ids + 4 * kept, i)
                kept += 1
    ascend(ids, used)


@helper
def softmax(v, peak):
    """Powers whose largest is 1."""
    return math.exp(sub(v, peak))


@helper
def sigmoid(v, peak):
    """Each by itself."""
    return math.sigmoid(v)


@helper
def _all_powers(x, experts, peak):
    """What powers are divided by to be a softmax."""
    sums = same(0.0)
    for c in range(0, experts, 16):
        sums = add(sums, first(softmax(load_f32(x + 4 * c), peak), experts - c))
    return total(sums)


@helper
def _nothing(x, experts, peak):
    return ONE


@helper
def _weigh(instr, x, ids, weights, gate, divisor):
    """Weights of the chosen. A row has room for whole vectors behind them."""
    used, peak, chosen = load_i64(instr + USED), LOWEST, same(0.0)
    for j in range(used):
        score = load_float(x + 4 * load_i32(ids + 4 * j))
        store_float(weights + 4 * j, score)
        peak = max(peak, score)
    for c in range(0, used, 16):
        gated = gate(load_f32(weights + 4 * c), same(peak))
        store_f32(weights + 4 * c, gated)
        chosen = add(chosen, first(gated, used - c))
    by = total(chosen) if load_i64(instr + NORMALISE) != 0 else divisor(x, load_i64(instr + EXPERTS), same(peak))
    for c in range(0, used, 16):
        shares = div(load_f32(weights + 4 * c), same(by))
        store_f32(weights + 4 * c, mul(shares, same(bits_to_float(load_i64(instr + SCALE)))))


@helper
def _deal(instr, tokens):
    """Sort the rows by counting: who has how many, where each begins, which row is whose."""
    experts, used, order = load_i64(instr + EXPERTS), load_i64(instr + USED), load_i64(instr + ORDER)
    counters, sources, places = load_i64(instr + COUNTERS), load_i64(instr + SOURCES), load_i64(instr + PLACES)
    for expert in range(experts):
        store_i64(counters + 8 * expert, 0)
    for token in range(tokens):
        for j in range(used):
            counter = counters + 8 * _chosen(instr, token, j)
            store_i64(counter, load_i64(counter) + 1)
    row, most, record = 0, 0, order + RECORDS
    for expert in range(experts):
        count = load_i64(counters + 8 * expert)
        store_i64(counters + 8 * expert, row)
        if count > 0:
            store_i64(record, expert)
            store_i64(record + 8, row)
            record += RECORD
        row, most = row + count, max(most, count)
    store_i64(record + 8, row)
    store_i64(order + DEALT, row)
    store_i64(order + ACTIVE, (record - order - RECORDS) // RECORD)
    store_i64(order + MOST, most)
    for token in range(tokens):
        for j in range(used):
            counter = counters + 8 * _chosen(instr, token, j)
            row = load_i64(counter)
            store_i64(counter, row + 1)
            store_u32(sources + 4 * row, token)
            store_u32(places + 4 * (token * used + j), row)


@helper
def _chosen(instr, token, j):
    """The expert of a token's choice."""
    return np.int64(load_float(load_i64(instr + OUT) + token * load_i64(instr + OUT_STRIDE) + 4 * j))


def _kernel(gate: Callable[..., Any], divisor: Callable[..., Any]) -> Callable[..., None]:
    def route(instr, state, tid, nth):
        """Tokens are dealt out in turn; the thread that ends last sorts."""
        tokens, used, experts = load_i64(load_i64(instr + COUNT)), load_i64(instr + USED), load_i64(instr + EXPERTS)
        for token in range(tid, tokens, nth):
            x = load_i64(instr + X) + token * load_i64(instr + STRIDE)
            ids = load_i64(instr + OUT) + token * load_i64(instr + OUT_STRIDE)
            weights = ids + 4 * used
            _choose(x, experts, used, ids, weights)
            _weigh(instr, x, ids, weights, gate, divisor)
            for j in range(used):
                store_float(ids + 4 * j, np.float32(load_i32(ids + 4 * j)))
        if atomic_add(instr + COUNTER, 1) == nth - 1:
            _deal(instr, tokens)

    return route


KERNELS = {"route_softmax": _kernel(softmax, _all_powers), "route_sigmoid": _kernel(sigmoid, _nothing)}
