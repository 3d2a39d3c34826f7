"""Matrix kernels, one a format: `out[t] = x[t] @ weights.T (+ bias) (+ residual[t])`.

Threads claim runs of row tiles. Several tokens go through `matrix.py` first, which unpacks a row tile once for all of
them; few, and those that are left, multiply straight from the packed bytes. Both do the same float operations in the
same order for each token and row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import formats
from .claim import claim
from .groups import multiply_halves, multiply_whole
from .instruction import LAYOUTS
from .jit import helper
from .lowerings import active
from .matrix import enter, leave, matrix_rows, prepare
from .memory import load_i64
from .packed import PACKED
from .peaks import note_peaks
from .result import store_result
from .tiles import add_scaled, dot_small, dot_wide, prefetch, zeros

COUNT, WEIGHTS, X, SUMS, X_STRIDE, COLUMNS, ROWS, PER_TILE, *_ = LAYOUTS["linear"].offsets()

LONG = (0,) * active.isa.tokens[0]
MIDDLE = (0,) * active.isa.tokens[-2]
TWO, ONE = (0, 0), (0,)
SEVERAL = 5
"""From so many tokens on, unpacked weights are worth being put down."""


@helper
def _quantized_rows(instr, row, shape, token, count, chunks, scales, dot, multiply, groups, step_bytes):
    """Multiply one row tile with as many tiles of tokens as fit; returns the first token left over."""
    packed = load_i64(instr + WEIGHTS) + (row // 16) * load_i64(instr + PER_TILE)
    steps, stride = load_i64(instr + COLUMNS) // (32 * groups), load_i64(instr + X_STRIDE)
    while token + len(shape) <= count:
        acc, w = zeros(shape), packed
        x, sums = load_i64(instr + X) + token * stride, load_i64(instr + SUMS) + token * (stride // 4)
        for _ in range(steps):
            prefetch(shape, w, step_bytes)
            for group in range(groups):
                acc = multiply(acc, dot, chunks(w, group), scales(w, group), x, sums, stride)
                x, sums = x + 64, sums + 16
            w += step_bytes
        store_result(instr, acc, row, token)
        token += len(shape)
    return token


@helper
def _float_rows(instr, row, shape, token, count, column, column_bytes):
    """The same for weights that are floats: one column at a time."""
    packed = load_i64(instr + WEIGHTS) + (row // 16) * load_i64(instr + PER_TILE)
    columns, stride = load_i64(instr + COLUMNS), load_i64(instr + X_STRIDE)
    while token + len(shape) <= count:
        acc, w, x = zeros(shape), packed, load_i64(instr + X) + token * stride
        for _ in range(columns):
            prefetch(shape, w, column_bytes)
            acc = add_scaled(acc, column(w), x, stride)
            w, x = w + column_bytes, x + 4
        store_result(instr, acc, row, token)
        token += len(shape)
    return token


class Product(NamedTuple):
    """The parts of one format's product; kernels take them as local names, which is all that numba looks up."""

    begin: Callable[..., None]
    """`begin(most)`: before anything is multiplied with up to `most` tokens."""
    gather: Callable[..., None]
    """`gather(instr, tid, count)`: before the first row tile of an instruction."""
    multiply: Callable[..., None]
    """`multiply(instr, tid, first, last, count)`: the row tiles `first` to `last - 1` with all tokens."""
    end: Callable[..., None]
    """`end(most)`: when all is done."""


def product(name: str) -> Product:
    """Of a family of packed weights."""
    return _quantized(name) if PACKED[name].quantized else _float(name)


def _quantized(name: str) -> Product:
    family = PACKED[name]
    chunks, scales = formats.unpackers(name)
    groups, step_bytes, wide, halves = family.columns // 32, family.step_bytes, family.wide, family.halves
    dot, one_group = dot_wide if wide else dot_small, multiply_halves if halves else multiply_whole
    many, depth = matrix_rows(chunks, scales, groups, step_bytes, wide, halves), 4 if halves else 8

    @helper
    def begin(most):
        if most >= SEVERAL:
            enter(depth)

    @helper
    def gather(instr, tid, count):
        if count >= SEVERAL:
            prepare(instr, tid, count)

    @helper
    def multiply(instr, tid, first, last, count):
        for row in range(16 * first, 16 * last, 16):
            token = 0
            if count >= SEVERAL:
                token = many(instr, row, tid, count)
            token = _quantized_rows(instr, row, TWO, token, count, chunks, scales, dot, one_group, groups, step_bytes)
            _quantized_rows(instr, row, ONE, token, count, chunks, scales, dot, one_group, groups, step_bytes)

    @helper
    def end(most):
        if most >= SEVERAL:
            leave()

    return Product(begin, gather, multiply, end)


def _float(name: str) -> Product:
    column, column_bytes = getattr(formats, f"{name}_column"), PACKED[name].step_bytes

    @helper
    def nothing(most):
        pass

    @helper
    def gather(instr, tid, count):
        pass

    @helper
    def multiply(instr, tid, first, last, count):
        for row in range(16 * first, 16 * last, 16):
            token = _float_rows(instr, row, LONG, 0, count, column, column_bytes)
            token = _float_rows(instr, row, MIDDLE, token, count, column, column_bytes)
            _float_rows(instr, row, ONE, token, count, column, column_bytes)

    return Product(nothing, gather, multiply, nothing)


def _kernel(name: str) -> Callable[..., None]:
    begin, gather, multiply, end = product(name)

    def linear(instr, state, tid, nth):
        count = load_i64(load_i64(instr + COUNT))
        tiles = (load_i64(instr + ROWS) + 15) // 16
        begin(count)
        gather(instr, tid, count)
        while True:
            first, last = claim(instr, tiles, nth)
            if first == last:
                break
            multiply(instr, tid, first, last, count)
            note_peaks(instr, first, last, count)
        end(count)

    return linear


KERNELS = {f"linear_{name}": _kernel(name) for name in PACKED}
