"""Products of a tile of attention: of its queries with the keys of a run, of its weights with the values of a run.

A tile alone reads pages as they are. Several tiles that walk together read what `widen` has made of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attention_places import (
    KEY_BYTES,
    KEY_SIZE,
    KEYS,
    SHARE,
    SUMS,
    VALUE_BYTES,
    VALUE_SIZE,
    VALUES,
    padded,
    queries,
    record_bytes,
    wide_keys,
    wide_values,
)
from .grids import (
    add_products,
    add_weighted,
    addresses,
    load_row,
    load_shrunk,
    prefetch_each,
    prefetch_lines,
    store_grid,
)
from .instruction import RUN, RUN_SCALES, TILE_ROWS, TILE_SHRINK, TILE_WEIGHTS
from .jit import apart, helper, routine
from .kv_reading import BLOCK, KeyReader, ValueReader
from .memory import load_i64
from .tiles import store_tile, zeros

COLUMNS = {1: 4, 2: 4, 3: 4, 4: 4, 8: 2}
"""Rows of a tile, to vectors side by side: sums enough to fill the latency of an addition, and registers for them."""
PAGES = RUN // 16


def _scores_of(keys: KeyReader, rows: int) -> Callable[..., Any]:
    columns = (0,) * COLUMNS[rows]
    shape, width = columns * rows, len(columns)
    scales, add = keys.scales, keys.adder(rows)
    scale_bytes, step, step_bytes = keys.scale_bytes, keys.step, keys.step_bytes

    @helper
    def of_pages(instr, first, scratch, tile):
        size, q = load_i64(instr + KEY_SIZE), queries(instr, tile)
        base, n_bytes = load_i64(instr + KEYS), load_i64(instr + KEY_BYTES)
        pages = addresses(columns, scratch + 8 * first, base, n_bytes)
        later = addresses(columns, scratch + 8 * (PAGES + first), base, n_bytes)
        acc, at = zeros(shape), 0
        for begin in range(0, size, BLOCK):
            found = scales(pages, at)
            at += scale_bytes
            for _ in range(0, min(BLOCK, size - begin), step):
                acc = add(acc, pages, at, found, q)
                prefetch_each(later, at)
                at += step_bytes
                q += 4 * step * rows
        store_grid(acc, columns, tile + TILE_WEIGHTS + 64 * first, 4 * RUN)

    @helper
    def scores(instr, seen, scratch, tile):
        for first in range(0, (seen + 15) // 16, width):
            of_pages(instr, first, scratch, tile)

    return scores


def _add_values_of(values: ValueReader, rows: int) -> Callable[..., Any]:
    several, two, one = (0,) * COLUMNS[rows], (0,) * 2, (0,)
    many, some, few = several * rows, two * rows, one * rows
    width, read, where = len(several), values.read, values.where
    prepare, vector_bytes = values.prepare, values.vector_bytes

    @helper
    def of_channels(instr, shape, columns, chunk, first, last, records, scratch, tile):
        """Add the values of the places `first` to `last - 1` of a run to the channels from vector `chunk` on."""
        size, n_bytes = load_i64(instr + VALUE_SIZE), load_i64(instr + VALUE_BYTES)
        shares = records + SUMS + SHARE + 64 * chunk
        acc = load_shrunk(zeros(shape), columns, shares, record_bytes(instr), tile + TILE_SHRINK)
        for i in range(first // 16, (last + 15) // 16):
            page = load_i64(instr + VALUES) + load_i64(scratch + 8 * i) * n_bytes
            later = (load_i64(scratch + 8 * (PAGES + i)) - load_i64(scratch + 8 * i)) * n_bytes
            weights = tile + TILE_WEIGHTS + 64 * i
            prepare(page, chunk, scratch + RUN_SCALES)
            for token in range(min(16, last - 16 * i)):
                place = where(page, size, token, chunk)
                found = read(columns, place, scratch + RUN_SCALES + 4 * token)
                acc = add_weighted(acc, found, weights + 4 * token, 4 * RUN)
                prefetch_lines(columns, place + later, vector_bytes)
        store_grid(acc, columns, shares, record_bytes(instr))

    @helper
    def add_values(instr, first, last, records, scratch, tile):
        chunks, chunk = (load_i64(instr + VALUE_SIZE) + 15) // 16, 0
        while chunk + width <= chunks:
            of_channels(instr, many, several, chunk, first, last, records, scratch, tile)
            chunk += width
        if chunk + 2 <= chunks:
            of_channels(instr, some, two, chunk, first, last, records, scratch, tile)
            chunk += 2
        if chunk < chunks:
            of_channels(instr, few, one, chunk, first, last, records, scratch, tile)

    return add_values


def scores_of(keys: KeyReader) -> Callable[..., Any]:
    """A routine that gives each row of a tile the products with the keys of a run, of which `seen` are looked at."""
    one, two, three, four, eight = (_scores_of(keys, rows) for rows in COLUMNS)

    @routine
    def scores(instr, seen, scratch, tile):
        apart()
        rows = load_i64(tile + TILE_ROWS)
        if rows == 8:
            eight(instr, seen, scratch, tile)
        elif rows == 4:
            four(instr, seen, scratch, tile)
        elif rows == 3:
            three(instr, seen, scratch, tile)
        elif rows == 2:
            two(instr, seen, scratch, tile)
        else:
            one(instr, seen, scratch, tile)

    return scores


def add_values_of(values: ValueReader) -> Callable[..., Any]:
    """A routine that shrinks each row's share and adds the weighted values of a run."""
    one, two, three, four, eight = (_add_values_of(values, rows) for rows in COLUMNS)

    @routine
    def add_values(instr, first, last, records, scratch, tile):
        apart()
        rows = load_i64(tile + TILE_ROWS)
        if rows == 8:
            eight(instr, first, last, records, scratch, tile)
        elif rows == 4:
            four(instr, first, last, records, scratch, tile)
        elif rows == 3:
            three(instr, first, last, records, scratch, tile)
        elif rows == 2:
            two(instr, first, last, records, scratch, tile)
        else:
            one(instr, first, last, records, scratch, tile)

    return add_values


def _widen_keys_of(keys: KeyReader) -> Callable[..., Any]:
    columns = (0,) * PAGES
    scales, store = keys.scales, keys.storer(PAGES)
    scale_bytes, step, step_bytes = keys.scale_bytes, keys.step, keys.step_bytes

    @helper
    def widen_keys(instr, scratch):
        size, target = load_i64(instr + KEY_SIZE), wide_keys(scratch)
        pages, at = addresses(columns, scratch, load_i64(instr + KEYS), load_i64(instr + KEY_BYTES)), 0
        for begin in range(0, size, BLOCK):
            found = scales(pages, at)
            at += scale_bytes
            for _ in range(0, min(BLOCK, size - begin), step):
                store(pages, at, found, target)
                at += step_bytes
                target += 4 * RUN * step

    return widen_keys


def widen_of(keys: KeyReader, values: ValueReader) -> Callable[..., Any]:
    """A routine that writes the keys of a run, and its values up to place `last - 1`, as float32."""
    widen_keys, two, one = _widen_keys_of(keys), (0,) * 2, (0,)
    read, where, prepare = values.read, values.where, values.prepare

    @routine
    def widen(instr, first, last, scratch):
        apart()
        widen_keys(instr, scratch)
        size, scales = load_i64(instr + VALUE_SIZE), scratch + RUN_SCALES
        chunks, wide = padded(size) // 16, wide_values(instr, scratch)
        for i in range(first // 16, (last + 15) // 16):
            page = load_i64(instr + VALUES) + load_i64(scratch + 8 * i) * load_i64(instr + VALUE_BYTES)
            for chunk in range(0, chunks, 2):
                prepare(page, chunk, scales)
                for token in range(min(16, last - 16 * i)):
                    place, target = where(page, size, token, chunk), wide + 64 * (chunks * (16 * i + token) + chunk)
                    if chunk + 1 < chunks:
                        store_tile(read(two, place, scales + 4 * token), target, 64)
                    else:
                        store_tile(read(one, place, scales + 4 * token), target, 64)

    return widen


EIGHT_BY_TWO, TWO, EIGHT, ONE = (0,) * 16, (0,) * 2, (0,) * 8, (0,)


@routine
def wide_scores(instr, seen, scratch, tile):
    """Like what `scores_of` makes, of eight rows with a widened run."""
    apart()
    size = load_i64(instr + KEY_SIZE)
    for first in range(0, (seen + 15) // 16, 2):
        acc, q, keys = zeros(EIGHT_BY_TWO), queries(instr, tile), wide_keys(scratch) + 64 * first
        for _ in range(size):
            acc = add_products(acc, load_row(TWO, keys), q)
            q += 4 * 8
            keys += 4 * RUN
        store_grid(acc, TWO, tile + TILE_WEIGHTS + 64 * first, 4 * RUN)


@helper
def _wide_channels(instr, shape, columns, chunk, first, last, records, scratch, tile):
    n_bytes, size = record_bytes(instr), 4 * padded(load_i64(instr + VALUE_SIZE))
    shares = records + SUMS + SHARE + 64 * chunk
    acc = load_shrunk(zeros(shape), columns, shares, n_bytes, tile + TILE_SHRINK)
    values, weights = wide_values(instr, scratch) + 64 * chunk, tile + TILE_WEIGHTS
    for token in range(first, last):
        acc = add_weighted(acc, load_row(columns, values + size * token), weights + 4 * token, 4 * RUN)
    store_grid(acc, columns, shares, n_bytes)


@routine
def add_wide_values(instr, first, last, records, scratch, tile):
    """Like what `add_values_of` makes, of eight rows with a widened run."""
    apart()
    chunks, first = padded(load_i64(instr + VALUE_SIZE)) // 16, first // 16 * 16
    for chunk in range(0, chunks - 1, 2):
        _wide_channels(instr, EIGHT_BY_TWO, TWO, chunk, first, last, records, scratch, tile)
    if chunks % 2 == 1:
        _wide_channels(instr, EIGHT, ONE, chunks - 1, first, last, records, scratch, tile)
