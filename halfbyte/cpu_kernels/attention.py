"""Attention over pages with an online softmax.

A tile is up to eight rows that share the loaded keys and values: eight neighbouring tokens of one sequence under one
head, or the heads of one token that share a kv head. A row walks the pages of its sequence in order and does the same
float operations in either kind of tile; a page that a row must not see changes nothing in it, to the bit.
"""

from __future__ import annotations

import numpy as np

from . import math
from .instruction import COUNTER, LAYOUTS
from .instruction import state as word
from .jit import helper
from .memory import atomic_add, bits_to_float, load_float, load_i32, load_i64, store_float
from .ops import div, keep_between, lane, largest, load_f16, load_f32, mul, same, store_f32, sub, total
from .tiles import add_scaled, load_tile, store_tile, zeros

(
    Q, KEYS, VALUES, OUT, HEADS, KV_HEADS, KEY_SIZE, VALUE_SIZE, SCALE, SOFTCAP, WINDOW, Q_STRIDE, OUT_STRIDE, SCRATCH,
    SCRATCH_BYTES,
) = LAYOUTS["attention"].offsets()  # fmt: skip
TOKENS, POSITIONS, SEQ_OF, PAGE_TABLE, MAX_PAGES = (
    word(name) for name in ("tokens", "positions", "seq_of", "page_table", "max_pages")
)
ROWS = 8
EIGHT, FOUR, ONE = (0,) * 8, (0,) * 4, (0,)
WEIGHTS, PEAKS, SUMS, SHARES = 0, 64 * ROWS, 68 * ROWS, 72 * ROWS
"""A thread's scratch: 16 weights a row, each row's largest score and sum, its weighted values; then the queries."""
NOTHING_YET = np.float32(-1e30)


@helper
def _stage(instr, shape, q, q_step, scratch):
    """Copy the queries of a tile, channel by channel: the rows' values of a channel lie side by side."""
    target = queries(instr, scratch)
    for c in range(load_i64(instr + KEY_SIZE)):
        for row in range(len(shape)):
            store_float(target + 4 * row, load_float(q + row * q_step + 4 * c))
        target += 4 * len(shape)


@helper
def queries(instr, scratch):
    """Where the staged queries lie: behind the shares of eight rows."""
    return scratch + SHARES + 4 * ROWS * padded(load_i64(instr + VALUE_SIZE))


@helper
def _scores(instr, shape, page, scratch):
    """Dot products of each row with the 16 keys of a page."""
    acc, q = zeros(shape), queries(instr, scratch)
    for c in range(load_i64(instr + KEY_SIZE)):
        acc = add_scaled(acc, load_f16(page + 32 * c), q, 4)
        q += 4 * len(shape)
    store_tile(acc, scratch + WEIGHTS, 64)


@helper
def _soften(instr, scratch, row, first, last):
    """Scores of a row to weights; what was summed before shrinks where a larger score came up."""
    score = mul(load_f32(scratch + WEIGHTS + 64 * row), same(bits_to_float(load_i64(instr + SCALE))))
    cap = bits_to_float(load_i64(instr + SOFTCAP))
    if cap > 0:
        score = mul(same(cap), math.tanh(div(score, same(cap))))
    score = keep_between(score, first, last)
    before = load_float(scratch + PEAKS + 4 * row)
    peak = max(before, largest(score))
    weights = math.exp(sub(score, same(peak)))
    store_f32(scratch + WEIGHTS + 64 * row, weights)
    if peak != before:
        shrink = math.exp(same(before - peak))
        store_float(scratch + PEAKS + 4 * row, peak)
        store_float(scratch + SUMS + 4 * row, load_float(scratch + SUMS + 4 * row) * lane(shrink, 0))
        size = padded(load_i64(instr + VALUE_SIZE))
        shares = scratch + SHARES + 4 * row * size
        for c in range(0, 4 * size, 64):
            store_f32(shares + c, mul(load_f32(shares + c), shrink))
    store_float(scratch + SUMS + 4 * row, load_float(scratch + SUMS + 4 * row) + total(weights))


@helper
def padded(size):
    """Channels of a value as stored: whole vectors."""
    return (size + 15) // 16 * 16


@helper
def _add_values(instr, shape, page, seen, scratch):
    """Add the weighted values of the first `seen` tokens of a page to every row's share."""
    size = padded(load_i64(instr + VALUE_SIZE))
    for c in range(0, size, 16):
        shares = scratch + SHARES + 4 * c
        acc = load_tile(zeros(shape), shares, 4 * size)
        for place in range(seen):
            acc = add_scaled(acc, load_f16(page + 2 * (place * size + c)), scratch + WEIGHTS + 4 * place, 64)
        store_tile(acc, shares, 4 * size)


@helper
def _write(instr, shape, out, out_step, scratch):
    """Divide each row's share by its sum of weights."""
    exact = load_i64(instr + VALUE_SIZE)
    for row in range(len(shape)):
        inverse = same(1 / load_float(scratch + SUMS + 4 * row))
        shares = scratch + SHARES + 4 * row * padded(exact)
        for c in range(0, exact, 16):
            share = mul(load_f32(shares + 4 * c), inverse)
            if c + 16 <= exact:
                store_f32(out + 4 * c, share)
            else:
                for i in range(exact - c):
                    store_float(out + 4 * (c + i), lane(share, i))
        out += out_step


@helper
def _tile(instr, state, shape, token, token_step, head, scratch):
    """One tile: rows are tokens from `token` on (`token_step` 1), or heads from `head` on (`token_step` 0)."""
    positions = load_i64(state + POSITIONS) + 4 * token
    oldest, newest = load_i32(positions), load_i32(positions + 4 * token_step * (len(shape) - 1))
    window, key_size, kv_heads = load_i64(instr + WINDOW), load_i64(instr + KEY_SIZE), load_i64(instr + KV_HEADS)
    kv_head = head // (load_i64(instr + HEADS) // kv_heads)
    value_size, step = load_i64(instr + VALUE_SIZE), 1 - token_step
    q_step = token_step * load_i64(instr + Q_STRIDE) + step * 4 * key_size
    out_step = token_step * load_i64(instr + OUT_STRIDE) + step * 4 * value_size
    q = load_i64(instr + Q) + token * load_i64(instr + Q_STRIDE) + 4 * head * key_size
    pages = load_i64(state + PAGE_TABLE)
    pages += 4 * load_i32(load_i64(state + SEQ_OF) + 4 * token) * load_i64(state + MAX_PAGES)
    _stage(instr, shape, q, q_step, scratch)
    for row in range(len(shape)):
        store_float(scratch + PEAKS + 4 * row, NOTHING_YET)
        store_float(scratch + SUMS + 4 * row, np.float32(0))
    for c in range(0, 4 * len(shape) * padded(value_size), 64):
        store_f32(scratch + SHARES + c, same(0.0))
    for index in range(max(0, oldest - window + 1) // 16, newest // 16 + 1):
        slot = (load_i32(pages + 4 * index) * kv_heads + kv_head) * 32
        _scores(instr, shape, load_i64(instr + KEYS) + slot * key_size, scratch)
        for row in range(len(shape)):
            end = load_i32(positions + 4 * token_step * row) + 1 - 16 * index
            _soften(instr, scratch, row, max(0, end - window), end)
        values = load_i64(instr + VALUES) + slot * padded(value_size)
        _add_values(instr, shape, values, min(16, newest + 1 - 16 * index), scratch)
    out = load_i64(instr + OUT) + token * load_i64(instr + OUT_STRIDE) + 4 * head * value_size
    _write(instr, shape, out, out_step, scratch)


@helper
def _heads_of_token(instr, state, token, head, end, scratch):
    """The heads `head` to `end - 1` of one token, in tiles of four; a last one may do heads again, to the same bits."""
    few = end - head < 4
    while head < end:
        if few:
            _tile(instr, state, ONE, token, 0, head, scratch)
            head += 1
        else:
            _tile(instr, state, FOUR, token, 0, min(head, end - 4), scratch)
            head += 4


@helper
def _unit(instr, state, begin, end, head, last, scratch):
    """Tokens `begin` to `end - 1` under the heads `head` to `last - 1`, which share a kv head."""
    seqs = load_i64(state + SEQ_OF) + 4 * begin
    if end - begin == ROWS and load_i32(seqs) == load_i32(seqs + 4 * (ROWS - 1)):
        for h in range(head, last):
            _tile(instr, state, EIGHT, begin, 1, h, scratch)
    else:
        for token in range(begin, end):
            _heads_of_token(instr, state, token, head, last, scratch)


def attention(instr, state, tid, nth):
    """Threads take units of eight tokens under a kv head; of one token, or some of its heads, where those are few.

    How the work is cut depends on the number of threads. What a row computes does not.
    """
    tokens, kv_heads = load_i64(state + TOKENS), load_i64(instr + KV_HEADS)
    group = load_i64(instr + HEADS) // kv_heads
    span = ROWS if (tokens + ROWS - 1) // ROWS * kv_heads >= 4 * nth else 1
    tiles = (tokens + span - 1) // span
    pieces = min(group, nth) if tiles * kv_heads < 2 * nth else 1
    scratch = load_i64(instr + SCRATCH) + tid * load_i64(instr + SCRATCH_BYTES)
    while True:
        unit = atomic_add(instr + COUNTER, 1)
        if unit >= tiles * kv_heads * pieces:
            break
        piece, kv_head, tile = unit % pieces, unit // pieces % kv_heads, unit // (pieces * kv_heads)
        head = kv_head * group + group * piece // pieces
        last = kv_head * group + group * (piece + 1) // pieces
        _unit(instr, state, tile * span, min((tile + 1) * span, tokens), head, last, scratch)


KERNELS = {"attention": attention}
