"""Attention of few rows to many keys: threads take pieces, and leave each row's records of them where all can read.

They are merged in order of position, by the same operations as when one thread walks all pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import math
from .attention_places import (
    HEADS,
    OUT,
    OUT_STRIDE,
    PARTIALS,
    SUMS,
    VALUE_SIZE,
    WINDOW,
    end_of,
    first_tile,
    record_bytes,
    sink_of,
    tile_bytes,
)
from .attention_tile import fill_tiles, first_key, last_key, pages_of
from .instruction import PIECE, ROWS, TILE_RECORDS
from .jit import apart, helper, routine
from .memory import load_float, load_i64, store_float
from .ops import load_f32, maximum, same, store_f32, sub
from .softmax import merge_row, write_row


@helper
def partial_bytes(instr):
    """Bytes of one row's records of one piece: the largest score, then as in a tile."""
    return SUMS + record_bytes(instr)


@helper
def _partial(instr, token, head, piece, pieces, nth):
    """Where a row's record of a piece lies: behind the counts of arrivals."""
    row = token * load_i64(instr + HEADS) + head
    return load_i64(instr + PARTIALS) + 64 * nth + (row * pieces + piece) * partial_bytes(instr)


def add_piece_with(walk_piece: Callable[..., Any]) -> Callable[..., Any]:
    """A routine that walks a piece with `count` tokens of a sequence and leaves the records."""

    @routine
    def add_piece(instr, state, token, count, head, heads, kv_head, scratch, piece, pieces, nth):
        apart()
        end, begin = fill_tiles(instr, state, token, count, head, heads, scratch), first_tile(instr, scratch)
        last, n_bytes = last_key(end - tile_bytes(instr)), record_bytes(instr)
        if piece * PIECE >= last or (piece + 1) * PIECE <= first_key(instr, begin):
            return
        walk_piece(instr, pages_of(state, token), kv_head, piece, 0, TILE_RECORDS, scratch, end)
        for row in range(count * heads):
            records = begin + row // ROWS * tile_bytes(instr) + TILE_RECORDS
            target = _partial(instr, token + row // heads, head + row % heads, piece, pieces, nth)
            store_float(target, load_float(records + 4 * (row % ROWS)))
            for c in range(0, n_bytes, 64):
                store_f32(target + SUMS + c, load_f32(records + SUMS + n_bytes * (row % ROWS) + c))

    return add_piece


@routine
def put_together(instr, state, begin, end, head, heads, pieces, nth):
    """Merge the pieces of the tokens `begin` to `end - 1` and write their results."""
    apart()
    for token in range(begin, end):
        last = end_of(instr, state, token)
        first = max(0, last - load_i64(instr + WINDOW)) // PIECE
        for h in range(head, head + heads):
            whole = _partial(instr, token, h, first, pieces, nth)
            for piece in range(first + 1, (last - 1) // PIECE + 1):
                _merge(whole, _partial(instr, token, h, piece, pieces, nth), record_bytes(instr))
            out = load_i64(instr + OUT) + token * load_i64(instr + OUT_STRIDE)
            out_row = out + 4 * h * load_i64(instr + VALUE_SIZE)
            write_row(instr, whole + SUMS, load_float(whole), sink_of(instr, h), out_row)


@helper
def _merge(whole, part, n_bytes):
    own, other = same(load_float(whole)), same(load_float(part))
    peak = maximum(other, own)
    mine, theirs = math.exp2_to_1(sub(own, peak)), math.exp2_to_1(sub(other, peak))
    merge_row(whole + SUMS, part + SUMS, mine, theirs, n_bytes)
    store_f32(whole, peak)
