"""The k best of a row of logits, in one pass: most vectors hold nothing above the worst kept one."""

from __future__ import annotations

import numpy as np

from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_float, load_i32, load_i64, store_float, store_i64, store_u32
from .ops import any_above, load_f32
from .tiles import prefetch

LOGITS, SIZE, K, IDS, VALUES = LAYOUTS["top_k"].offsets()
LOWEST = np.float32(-np.inf)
SPAN, SPAN_BYTES = 64, 256
ONE = (0,)


@helper
def _any(at, bound):
    """Whether any of four vectors has a number above `bound`: one branch for a few cache lines."""
    first = any_above(load_f32(at), bound) | any_above(load_f32(at + 64), bound)
    return first | any_above(load_f32(at + 128), bound) | any_above(load_f32(at + 192), bound)


@helper
def _insert(ids, values, kept, k, index, value):
    """Put a value behind all that are not smaller; returns how many are kept."""
    place = min(kept, k - 1)
    while place > 0 and load_float(values + 4 * (place - 1)) < value:
        store_float(values + 4 * place, load_float(values + 4 * (place - 1)))
        store_u32(ids + 4 * place, load_i32(ids + 4 * (place - 1)))
        place -= 1
    store_float(values + 4 * place, value)
    store_u32(ids + 4 * place, index)
    return min(kept + 1, k)


def top_k(instr, state, tid, nth):
    """Runs on the thread that comes first, so that several of them share the threads.

    Afterwards `k` in the instruction is the number found; NaN and -inf never are.
    """
    if atomic_add(instr + COUNTER, 1) != 0:
        return
    logits, size, k = load_i64(instr + LOGITS), load_i64(instr + SIZE), load_i64(instr + K)
    ids, values = load_i64(instr + IDS), load_i64(instr + VALUES)
    kept, bound = 0, LOWEST
    for base in range(0, size, SPAN):
        if base + SPAN <= size:
            at = logits + 4 * base
            prefetch(ONE, at, SPAN_BYTES)
            if _any(at, bound) == 0:
                continue
        for i in range(base, min(base + SPAN, size)):
            value = load_float(logits + 4 * i)
            if value > bound:
                kept = _insert(ids, values, kept, k, i, value)
                if kept == k:
                    bound = load_float(values + 4 * (k - 1))
    store_i64(instr + K, kept)


KERNELS = {"top_k": top_k}
