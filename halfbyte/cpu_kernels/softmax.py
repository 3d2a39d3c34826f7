"""Online softmax of the rows of a tile: what is known of each lies in a record, 64 new scores at a time go into it.

A set of records is the largest score of each row so far, then of each row 16 sums of weights (every sixteenth weight in
one) and its share of the values. Scores are in powers of two. Sets of two pieces of the keys can be merged; a row that
has seen nothing of a piece changes nothing, to the bit.
"""

from __future__ import annotations

import numpy as np

from . import math
from .attention_places import LOG2_E, NO_SINK, SHARE, SOFTCAP, SUMS, VALUE_SIZE, WINDOW, record_bytes
from .instruction import RUN, TILE_ENDS, TILE_OUT, TILE_PEAKS, TILE_ROWS, TILE_SHRINK, TILE_SINKS, TILE_WEIGHTS
from .jit import apart, helper, routine
from .memory import bits_to_float, load_float, load_i64, store_float
from .ops import (
    add,
    div,
    fma,
    keep_between,
    lane,
    largest,
    load_f32,
    maximum,
    minimum,
    mul,
    same,
    store_f32,
    sub,
    total,
)

NOTHING_YET = np.float32(-1e30)


@routine
def clear(instr, records, tile):
    """Records that have seen no key."""
    apart()
    store_f32(records, same(NOTHING_YET))
    end = records + SUMS + record_bytes(instr) * load_i64(tile + TILE_ROWS)
    for at in range(records + SUMS, end, 64):
        store_f32(at, same(0.0))


@routine
def soften(instr, run, records, tile):
    """Scores of the run at position `run` to weights; sums and largest scores into the records; how shares shrink."""
    apart()
    rows, n_bytes = load_i64(tile + TILE_ROWS), record_bytes(instr)
    window, cap = load_i64(instr + WINDOW), bits_to_float(load_i64(instr + SOFTCAP))
    for row in range(rows):
        scores, end = tile + TILE_WEIGHTS + 4 * RUN * row, load_i64(tile + TILE_ENDS + 8 * row) - run
        if cap > 0:
            _bend(scores, cap)
        if end < RUN or end > window:
            _hide(scores, max(0, end - window), end)
        top = maximum(load_f32(scores), load_f32(scores + 64))
        top = maximum(top, maximum(load_f32(scores + 128), load_f32(scores + 192)))
        store_float(tile + TILE_PEAKS + 4 * row, largest(top))
    before = load_f32(records)
    peaks = maximum(load_f32(tile + TILE_PEAKS), before)
    store_f32(records, peaks)
    store_f32(tile + TILE_SHRINK, math.exp2_to_1(sub(before, peaks)))
    for row in range(rows):
        scores, sums = tile + TILE_WEIGHTS + 4 * RUN * row, records + SUMS + n_bytes * row
        new = _weigh(scores, same(load_float(records + 4 * row)))
        store_f32(sums, fma(load_f32(sums), same(load_float(tile + TILE_SHRINK + 4 * row)), new))


@helper
def _bend(scores, cap):
    """A row's scores to within the soft cap, and to powers of two."""
    for at in range(scores, scores + 4 * RUN, 64):
        store_f32(at, mul(same(cap * LOG2_E), math.tanh(div(load_f32(at), same(cap)))))


@helper
def _hide(scores, first, last):
    """Of a row's scores keep `first` to `last - 1`; the others get no weight."""
    for i in range(0, RUN, 16):
        at = scores + 4 * i
        store_f32(at, keep_between(load_f32(at), first - i, last - i))


@helper
def _weigh(scores, peak):
    """A row's scores to weights; returns their sums by lane."""
    a, b = math.exp2_to_1(sub(load_f32(scores), peak)), math.exp2_to_1(sub(load_f32(scores + 64), peak))
    c, d = math.exp2_to_1(sub(load_f32(scores + 128), peak)), math.exp2_to_1(sub(load_f32(scores + 192), peak))
    store_f32(scores, a)
    store_f32(scores + 64, b)
    store_f32(scores + 128, c)
    store_f32(scores + 192, d)
    return add(add(a, b), add(c, d))


@routine
def merge(instr, records, others, tile):
    """Add to the records of a tile what others have seen."""
    apart()
    n_bytes = record_bytes(instr)
    own, other = load_f32(records), load_f32(others)
    peaks = maximum(other, own)
    store_f32(records, peaks)
    store_f32(tile + TILE_SHRINK, math.exp2_to_1(sub(own, peaks)))
    store_f32(tile + TILE_PEAKS, math.exp2_to_1(sub(other, peaks)))
    for row in range(load_i64(tile + TILE_ROWS)):
        at = SUMS + n_bytes * row
        mine, theirs = load_float(tile + TILE_SHRINK + 4 * row), load_float(tile + TILE_PEAKS + 4 * row)
        merge_row(records + at, others + at, same(mine), same(theirs), n_bytes)


@helper
def merge_row(record, other, mine, theirs, n_bytes):
    """`record * mine + other * theirs`."""
    for c in range(0, n_bytes, 64):
        store_f32(record + c, fma(load_f32(other + c), theirs, mul(load_f32(record + c), mine)))


@routine
def write_rows(instr, records, tile):
    """Write what the rows of a tile attended to."""
    apart()
    n_bytes = record_bytes(instr)
    for row in range(load_i64(tile + TILE_ROWS)):
        peak, sink = load_float(records + 4 * row), load_float(tile + TILE_SINKS + 4 * row)
        write_row(instr, records + SUMS + n_bytes * row, peak, sink, load_i64(tile + TILE_OUT + 8 * row))


@helper
def write_row(instr, record, peak, sink, out):
    """Divide a row's share by its sum of weights, the sink's among them."""
    weights, exact = total(load_f32(record)), load_i64(instr + VALUE_SIZE)
    if sink > NO_SINK:  # beyond 2^126 nothing is left of the others anyway
        weights += lane(math.exp2_to_1(minimum(same(sink - peak), same(126.0))), 0)
    inverse = same(1 / weights)
    for c in range(0, exact, 16):
        share = mul(load_f32(record + SHARE + 4 * c), inverse)
        if c + 16 <= exact:
            store_f32(out + 4 * c, share)
        else:
            for i in range(exact - c):
                store_float(out + 4 * (c + i), lane(share, i))
