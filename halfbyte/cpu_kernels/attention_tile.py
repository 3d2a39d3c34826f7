"""Tiles of attention: up to eight rows each that share a kv head and its sequence, and walk keys and values together.

A row is a token under a head. Keys come in runs of 64, four pages; runs in pieces of 256, each with records of its own,
merged in order. Where runs and pieces begin does not depend on who walks, so a row does the same float operations in
any tile, and on any number of threads; keys that a row must not see change nothing in it, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .attention_places import (
    KEY_SIZE,
    KV_HEADS,
    OUT,
    OUT_STRIDE,
    Q_STRIDE,
    SCALE,
    SEQ_OF,
    VALUE_SIZE,
    WINDOW,
    Q,
    end_of,
    first_tile,
    queries,
    set_bytes,
    sink_of,
    tile_bytes,
)
from .attention_products import add_values_of, add_wide_values, scores_of, wide_scores, widen_of
from .instruction import PIECE, ROWS, RUN, TILE_ENDS, TILE_OUT, TILE_Q, TILE_RECORDS, TILE_ROWS, TILE_SINKS
from .instruction import state as word
from .jit import apart, helper, routine
from .kv_reading import KEY_READERS, VALUE_READERS
from .memory import bits_to_float, load_float, load_i32, load_i64, store_float, store_i64
from .softmax import clear, merge, soften, write_rows

PAGE_TABLE, MAX_PAGES = word("page_table"), word("max_pages")


@routine
def fill_tiles(instr, state, token, count, head, heads, scratch):
    """Make tiles of `count` tokens from `token` on under `heads` heads from `head` on, token by token; returns the end.

    Where a tile has more places than rows are left it does the last row again. More than one tile are all of eight.
    """
    apart()
    end, row, tile = count * heads, 0, first_tile(instr, scratch)
    while row < end:
        left = end - row
        rows = left if left <= 4 and row == 0 else ROWS
        store_i64(tile + TILE_ROWS, rows)
        for i in range(ROWS):
            this = min(row + i, end - 1)
            t, h = token + this // heads, head + this % heads
            q = load_i64(instr + Q) + t * load_i64(instr + Q_STRIDE)
            out = load_i64(instr + OUT) + t * load_i64(instr + OUT_STRIDE)
            store_i64(tile + TILE_Q + 8 * i, q + 4 * h * load_i64(instr + KEY_SIZE))
            store_i64(tile + TILE_OUT + 8 * i, out + 4 * h * load_i64(instr + VALUE_SIZE))
            store_i64(tile + TILE_ENDS + 8 * i, end_of(instr, state, t))
            store_float(tile + TILE_SINKS + 4 * i, sink_of(instr, h))
        _stage(instr, tile)
        row += rows
        tile += tile_bytes(instr)
    return tile


@helper
def _stage(instr, tile):
    """Copy the scaled queries of a tile, channel by channel: the rows' values of a channel lie side by side."""
    scale, rows = bits_to_float(load_i64(instr + SCALE)), load_i64(tile + TILE_ROWS)
    for row in range(rows):
        q, target = load_i64(tile + TILE_Q + 8 * row), queries(instr, tile) + 4 * row
        size = load_i64(instr + KEY_SIZE)
        for c in range(size):
            store_float(target + 4 * c * rows, load_float(q + 4 * c) * scale)
        if size % 2 == 1:
            store_float(target + 4 * size * rows, np.float32(0))


@helper
def first_key(instr, tile):
    """The first position that any row of a tile sees: rows are in order of position."""
    return max(0, load_i64(tile + TILE_ENDS) - load_i64(instr + WINDOW))


@helper
def last_key(tile):
    """The position behind the last that any row of a tile sees."""
    return load_i64(tile + TILE_ENDS + 8 * (ROWS - 1))


@helper
def pages_of(state, token):
    """Address of the page table of a token's sequence."""
    seq = load_i32(load_i64(state + SEQ_OF) + 4 * token)
    return load_i64(state + PAGE_TABLE) + 4 * seq * load_i64(state + MAX_PAGES)


@helper
def _note_pages(instr, pages, kv_head, first, last, until, run, scratch):
    """Note a head's part of the four pages of a run, and of the next four to ask for them early.

    A page without a key of `first` to `last - 1` is not looked up; what stands for it instead gets no weight.
    """
    kv_heads, low = load_i64(instr + KV_HEADS), max(first, run) // 16
    for i in range(2 * RUN // 16):
        high = ((last if i < RUN // 16 else until) - 1) // 16
        page = load_i32(pages + 4 * min(max(run // 16 + i, low), high))
        store_i64(scratch + 8 * i, page * kv_heads + kv_head)


def walkers(keys: str, values: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Routines `walk_piece` and `attend` for a store of some types."""
    of_keys, of_values = KEY_READERS[keys], VALUE_READERS[values]
    scores, add_values, widen = scores_of(of_keys), add_values_of(of_values), widen_of(of_keys, of_values)

    @helper
    def run_together(instr, run, first, seen, which, scratch, end):
        """A run for several tiles; a tile that ends before the run leaves it out."""
        widen(instr, first, seen, scratch)
        for tile in range(first_tile(instr, scratch), end, tile_bytes(instr)):
            last = min(seen, last_key(tile) - run)
            if last > 0:
                wide_scores(instr, last, scratch, tile)
                soften(instr, run, tile + which, tile)
                add_wide_values(instr, first, last, tile + which, scratch, tile)

    @routine
    def walk_piece(instr, pages, kv_head, piece, until, which, scratch, end):
        """Into fresh records, at `which` in each tile, what they see of a piece; ask early for pages to `until`."""
        apart()
        tile = first_tile(instr, scratch)
        first = max(piece * PIECE, first_key(instr, tile))
        last = min((piece + 1) * PIECE, last_key(end - tile_bytes(instr)))
        for each in range(tile, end, tile_bytes(instr)):
            clear(instr, each + which, each)
        for run in range(first // RUN * RUN, last, RUN):
            _note_pages(instr, pages, kv_head, first, last, max(last, until), run, scratch)
            begin, seen = max(0, first - run), min(RUN, last - run)
            if tile + tile_bytes(instr) == end:
                scores(instr, seen, scratch, tile)
                soften(instr, run, tile + which, tile)
                add_values(instr, begin, seen, tile + which, scratch, tile)
            else:
                run_together(instr, run, begin, seen, which, scratch, end)

    return walk_piece, _attend_with(walk_piece)


def _attend_with(walk_piece: Callable[..., Any]) -> Callable[..., Any]:
    @routine
    def attend(instr, state, token, count, head, heads, kv_head, scratch):
        """`count` tokens of a sequence under some heads, from the first key to the written result."""
        apart()
        end, begin = fill_tiles(instr, state, token, count, head, heads, scratch), first_tile(instr, scratch)
        pages, which, second = pages_of(state, token), TILE_RECORDS, TILE_RECORDS + set_bytes(instr)
        last = last_key(end - tile_bytes(instr))
        for piece in range(first_key(instr, begin) // PIECE, (last - 1) // PIECE + 1):
            walk_piece(instr, pages, kv_head, piece, last, which, scratch, end)
            if which == second:
                for tile in range(begin, end, tile_bytes(instr)):
                    merge(instr, tile + TILE_RECORDS, tile + second, tile)
            which = second
        for tile in range(begin, end, tile_bytes(instr)):
            write_rows(instr, tile + TILE_RECORDS, tile)

    return attend
