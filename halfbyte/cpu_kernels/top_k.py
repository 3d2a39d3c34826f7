"""The k best of a row of logits."""

from __future__ import annotations

import numpy as np

from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_float, load_i32, load_i64, store_float, store_i64, store_u32
from .ops import any_above, load_f32
from .tiles import prefetch

LOGITS, SIZE, K, IDS, VALUES, PEAKS, TILES = LAYOUTS["top_k"].offsets()
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


@helper
def best_of(row, size, k, ids, values):
    """The k best of `size` floats in one pass, and how many: most vectors hold nothing above the worst kept one."""
    kept, bound = 0, LOWEST
    for base in range(0, size, SPAN):
        if base + SPAN <= size:
            at = row + 4 * base
            prefetch(ONE, at, SPAN_BYTES)
            if _any(at, bound) == 0:
                continue
        for i in range(base, min(base + SPAN, size)):
            value = load_float(row + 4 * i)
            if value > bound:
                kept = _insert(ids, values, kept, k, i, value)
                if kept == k:
                    bound = load_float(values + 4 * (k - 1))
    return kept


@helper
def ascend(ids, count):
    """Sort ids: equal logits are taken in their order."""
    for end in range(1, count):
        this, place = load_i32(ids + 4 * end), end
        while place > 0 and load_i32(ids + 4 * (place - 1)) > this:
            store_u32(ids + 4 * place, load_i32(ids + 4 * (place - 1)))
            place -= 1
        store_u32(ids + 4 * place, this)


@helper
def _best_of_tiles(row, size, k, ids, values, peaks, tiles):
    """The same by the peaks of its tiles of 16: the k best lie in the k tiles with the largest peaks.

    Each of these holds a logit that comes before all those of a tile left out, by size or, among equals, by place.
    """
    count = best_of(peaks, (size + 15) // 16, k, tiles, values)
    ascend(tiles, count)
    kept, bound = 0, LOWEST
    for t in range(count):
        base = 16 * load_i32(tiles + 4 * t)
        for i in range(base, min(base + 16, size)):
            value = load_float(row + 4 * i)
            if value > bound:
                kept = _insert(ids, values, kept, k, i, value)
                if kept == k:
                    bound = load_float(values + 4 * (k - 1))
    return kept


def top_k(instr, state, tid, nth):
    """Runs on the thread that comes first, so that several of them share the threads.

    Afterwards `k` in the instruction is the number found; NaN and -inf never are.
    """
    if atomic_add(instr + COUNTER, 1) != 0:
        return
    row, size, k = load_i64(instr + LOGITS), load_i64(instr + SIZE), load_i64(instr + K)
    ids, values, peaks = load_i64(instr + IDS), load_i64(instr + VALUES), load_i64(instr + PEAKS)
    if peaks == 0:
        kept = best_of(row, size, k, ids, values)
    else:
        kept = _best_of_tiles(row, size, k, ids, values, peaks, load_i64(instr + TILES))
    store_i64(instr + K, kept)


KERNELS = {"top_k": top_k}
