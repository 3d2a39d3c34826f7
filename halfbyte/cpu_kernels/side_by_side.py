"""Fewer than 16 tokens by matrix registers: eight at a time, both planes of their activations in one product.

A register has rows for 16 tokens' bytes of one plane, and a product takes as long for few rows as for many. So threads
first copy the activations to where eight tokens lie next to each other. Where there are fewer than eight, the others'
sums are whatever lies there, their scales are zero, and their results are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .groups import FIRST_SUM, SECOND_SUM, SUM
from .instruction import LAYOUTS, PARTIAL, PLACE, PLACES, SCALES, SIDE_BY_SIDE, UNPACKED
from .jit import helper
from .memory import load_i64, load_word, store_word
from .ops import load_f32, store_f32
from .result import store_result
from .tiles import add_group, load_tile, read_eight, store_tile, sum_eight, zeros

COUNT, WEIGHTS, X, SUMS, X_STRIDE, COLUMNS, *_ = LAYOUTS["linear"].offsets()
EIGHT, ONE = (0,) * SIDE_BY_SIDE, (0,)
ACTIVATIONS, RECORDS = 64 * SIDE_BY_SIDE, 16 * SIDE_BY_SIDE
"""Bytes of a group's activations and of their records: eight of each."""
HALF = PLACE // 2
"""Where the sums of a group's second half lie, behind those of the first."""


@helper
def _place(scratch, count):
    """Where the copies lie: behind the partial sums, of which there are up to eight more than tokens."""
    return scratch + PARTIAL + 64 * (count + SIDE_BY_SIDE)


@helper
def gather(instr, scratch, first, count):
    """Copy the tokens from `first` on: of each eight the activations, group after group, then the records."""
    stride, groups = load_i64(instr + X_STRIDE), load_i64(instr + COLUMNS) // 32
    target, token = _place(scratch, count), first
    while token < count:
        for t in range(SIDE_BY_SIDE):
            x = load_i64(instr + X) + (token + t) * stride
            sums, records = load_i64(instr + SUMS) + (token + t) * (stride // 4), target + groups * ACTIVATIONS
            for group in range(groups):
                record = records + group * RECORDS + 16 * t
                if token + t < count:
                    store_f32(target + group * ACTIVATIONS + 64 * t, load_f32(x + 64 * group))
                    store_word(record, load_word(sums + 16 * group))
                    store_word(record + 8, load_word(sums + 16 * group + 8))
                else:
                    store_word(record, 0)
                    store_word(record + 8, 0)
        target += groups * (ACTIVATIONS + RECORDS)
        token += SIDE_BY_SIDE


def _multiplier(halves: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`ask` for the sums of an unpacked group, and `multiply` once they are there."""

    @helper
    def ask_group(group, x, place):
        sum_eight(group, x, place)

    @helper
    def ask_halves(group, x, place):
        sum_eight(group, x, place)
        sum_eight(group + 256, x + 16, place + HALF)

    @helper
    def multiply_group(acc, group, records, place):
        scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
        return add_group(acc, read_eight(acc, place), scale, offset, records, SUM, 16)

    @helper
    def multiply_halves(acc, group, records, place):
        scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
        acc = add_group(acc, read_eight(acc, place), scale, offset, records, FIRST_SUM, 16)
        scale, offset = load_f32(group + SCALES + 128), load_f32(group + SCALES + 192)
        return add_group(acc, read_eight(acc, place + HALF), scale, offset, records, SECOND_SUM, 16)

    return (ask_halves, multiply_halves) if halves else (ask_group, multiply_group)


def few_tokens(halves: bool) -> Callable[..., Any]:
    """A helper that takes the tokens from `token` on past a block of unpacked groups."""
    ask, multiply = _multiplier(halves)

    @helper
    def few(instr, row, scratch, block, token, count):
        first, last, groups = block
        gathered = _place(scratch, count)
        while token < count:
            partial, acc = scratch + PARTIAL + 64 * token, zeros(EIGHT)
            if first > 0:
                acc = load_tile(acc, partial, 64)
            x, records = gathered + first * ACTIVATIONS, gathered + groups * ACTIVATIONS + first * RECORDS
            # Matrix registers answer late: ask for the next group before this one's answer is needed.
            place, other = scratch + PLACES, scratch + PLACES + PLACE
            group, final = scratch, scratch + UNPACKED * (last - first - 1)
            ask(group, x, place)
            while group < final:
                x += ACTIVATIONS
                ask(group + UNPACKED, x, other)
                acc = multiply(acc, group, records, place)
                place, other = other, place
                group, records = group + UNPACKED, records + RECORDS
            acc = multiply(acc, group, records, place)
            store_tile(acc, partial, 64)
            end = min(token + SIDE_BY_SIDE, count)
            if last == groups:
                for t in range(token, end):
                    store_result(instr, load_tile(zeros(ONE), partial, 64), row, t)
                    partial += 64
            token = end
            gathered += groups * (ACTIVATIONS + RECORDS)

    return few
