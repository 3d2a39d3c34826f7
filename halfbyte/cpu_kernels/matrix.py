"""Many tokens times one row tile: unpack a block of columns once, then let all tiles of tokens pass by it.

Unpacked, every format looks alike: chunks of bytes, scales and offsets. Sums of a tile wait in the thread's scratch
between two blocks, so each token still adds up its groups in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from .groups import FIRST_SUM, SECOND_SUM, SUM
from .instruction import BLOCK, FEW, LAYOUTS, PART, PARTIAL, PLACE, PLACES, SCALES, UNPACKED
from .jit import helper
from .lowerings import active
from .memory import load_i64
from .ops import load_f32, store_f32
from .result import OUT, OUT_STRIDE, SCRATCH, SCRATCH_BYTES, store_result
from .side_by_side import few_tokens, gather
from .tiles import (
    add_group,
    answer_half_small,
    answer_half_wide,
    answer_whole_small,
    answer_whole_wide,
    ask_half,
    ask_whole,
    load_tile,
    prefetch,
    prefetch_rows,
    store_chunks,
    store_tile,
    zeros,
)  # fmt: skip
from .vec import op

COUNT, WEIGHTS, X, SUMS, X_STRIDE, COLUMNS, ROWS, PER_TILE, *_ = LAYOUTS["linear"].offsets()
SHAPE, ONE = (0,) * active.isa.tokens[0], (0,)
BY_EIGHTS = active.sum_eight is not None


@op(types.void, types.int64)
def enter(builder: Any, depth: Any) -> None:
    """Prepare the matrix registers, where there are any, for sums over `depth` chunks (a constant)."""
    if active.enter is not None:
        active.enter(builder, depth.constant)


@op(types.void)
def leave(builder: Any) -> None:
    """Give the matrix registers back."""
    if active.leave is not None:
        active.leave(builder)


@helper
def scratch_of(instr, tid):
    """A thread's own scratch."""
    return load_i64(instr + SCRATCH) + tid * load_i64(instr + SCRATCH_BYTES)


@helper
def prepare(instr, tid, count):
    """What a thread does once before it multiplies `count` tokens."""
    if BY_EIGHTS:
        gather(instr, scratch_of(instr, tid), count // len(SHAPE) * len(SHAPE), count)


@helper
def _store_scales(target, scales):
    """Store the two or four vectors of a group."""
    for v in scales:
        store_f32(target, v)
        target += 64


def _multiplier(wide: bool, halves: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`ask` for the sums of an unpacked group and a tile of tokens, and `multiply` once they are there."""
    whole, half = (answer_whole_wide, answer_half_wide) if wide else (answer_whole_small, answer_half_small)

    @helper
    def ask_group(group, x, stride, place):
        ask_whole(group, x, stride, place)

    @helper
    def ask_halves(group, x, stride, place):
        ask_half(group, x, stride, place)
        ask_half(group + 256, x + 16, stride, place + PLACE)

    @helper
    def multiply_group(acc, group, x, sums, stride, place):
        scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
        return add_group(acc, whole(acc, group, x, stride, place), scale, offset, sums, SUM, stride // 4)

    @helper
    def multiply_halves(acc, group, x, sums, stride, place):
        scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
        acc = add_group(acc, half(acc, group, x, stride, place), scale, offset, sums, FIRST_SUM, stride // 4)
        scale, offset = load_f32(group + SCALES + 128), load_f32(group + SCALES + 192)
        dots = half(acc, group + 256, x + 16, stride, place + PLACE)
        return add_group(acc, dots, scale, offset, sums, SECOND_SUM, stride // 4)

    return (ask_halves, multiply_halves) if halves else (ask_group, multiply_group)


def _unpacker(chunks: Any, scales: Any, per_step: int, step_bytes: int) -> Callable[..., Any]:
    """Puts groups of a row tile down for all tokens, and asks for those that come soon."""
    share = -(-step_bytes // per_step)

    @helper
    def unpack(packed, first, last, target):
        for group in range(first, last):
            w, part = packed + (group // per_step) * step_bytes, group % per_step
            prefetch(ONE, w + part * share, share)
            store_chunks(target, chunks(w, part))
            _store_scales(target + SCALES, scales(w, part))
            target += UNPACKED

    return unpack


def matrix_rows(
    chunks: Any, scales: Any, per_step: int, step_bytes: int, wide: bool, halves: bool
) -> Callable[..., Any]:
    """A helper that multiplies one row tile with all full tiles of tokens and returns the first token left over.

    With matrix registers there is none.
    """
    ask, multiply = _multiplier(wide, halves)
    unpack, few = _unpacker(chunks, scales, per_step, step_bytes), few_tokens(halves)

    @helper
    def block(instr, row, end, scratch, first, last, groups):
        """All tiles of tokens over the groups `first` to `last - 1`."""
        stride = load_i64(instr + X_STRIDE)
        for token in range(0, end, len(SHAPE)):
            partial = scratch + PARTIAL + 64 * token
            acc = zeros(SHAPE)
            if first > 0:
                acc = load_tile(acc, partial, 64)
            x = load_i64(instr + X) + token * stride + 64 * first
            sums = load_i64(instr + SUMS) + token * (stride // 4) + 16 * first
            if last == groups:
                out_stride = load_i64(instr + OUT_STRIDE)
                prefetch_rows(acc, load_i64(instr + OUT) + token * out_stride + 4 * row, out_stride)
            # Matrix registers answer late: ask for the next group before this one's answer is needed.
            place, other = scratch + PLACES, scratch + PLACES + 2 * PLACE
            group, final = scratch, scratch + UNPACKED * (last - first - 1)
            ask(group, x, stride, place)
            while group < final:
                ask(group + UNPACKED, x + 64, stride, other)
                acc = multiply(acc, group, x, sums, stride, place)
                place, other = other, place
                group, x, sums = group + UNPACKED, x + 64, sums + 16
            acc = multiply(acc, group, x, sums, stride, place)
            if last < groups:
                store_tile(acc, partial, 64)
            else:
                store_result(instr, acc, row, token)

    @helper
    def rows(instr, row, tid, count):
        end = count // len(SHAPE) * len(SHAPE)
        left = count if BY_EIGHTS else end
        scratch = scratch_of(instr, tid)
        packed = load_i64(instr + WEIGHTS) + (row // 16) * load_i64(instr + PER_TILE)
        groups = load_i64(instr + COLUMNS) // 32
        size = PART if count <= FEW else BLOCK
        for first in range(0, groups if left > 0 else 0, size):
            last = min(first + size, groups)
            unpack(packed, first, last, scratch)
            block(instr, row, end, scratch, first, last, groups)
            if BY_EIGHTS:
                few(instr, row, scratch, (first, last, groups), end, count)
        return left

    return rows
