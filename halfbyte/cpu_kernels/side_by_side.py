"""Fewer than 16 tokens by matrix registers: eight at a time, both planes of their activations in one product.

A register has rows for 16 tokens' bytes of one plane, and a product takes as long for few rows as for many. So threads
first copy the activations to where eight tokens lie next to each other. The sums are put down, and each token that is
there adds up its own: the same float operations as in any other tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .groups import FIRST_SUM, SECOND_SUM, SUM
from .instruction import LAYOUTS, PART, PARTIAL, PLACE, PLACES, SCALES, SIDE_BY_SIDE, UNPACKED
from .jit import helper
from .memory import load_i64
from .ops import load_f32, store_f32
from .result import store_result
from .tiles import add_group, load_tile, read_sums, store_tile, sum_eight, zeros

COUNT, WEIGHTS, X, SUMS, X_STRIDE, COLUMNS, *_ = LAYOUTS["linear"].offsets()
ONE = (0,)
GROUP_OF_EIGHT = 64 * SIDE_BY_SIDE
SUMS_OF_GROUP = 2 * PLACE
HALF = PLACE
"""Where the sums of a group's second half lie, behind those of the first."""


@helper
def _place(scratch, count):
    """Where the copies lie: behind the partial sums of all tokens."""
    return scratch + PARTIAL + 64 * count


@helper
def gather(instr, scratch, first, count):
    """Copy the activations of the tokens from `first` on: group after group, eight tokens next to each other."""
    stride, groups = load_i64(instr + X_STRIDE), load_i64(instr + COLUMNS) // 32
    for token in range(first, count):
        eight, place = (token - first) // SIDE_BY_SIDE, (token - first) % SIDE_BY_SIDE
        target = _place(scratch, count) + eight * groups * GROUP_OF_EIGHT + 64 * place
        x = load_i64(instr + X) + token * stride
        for group in range(groups):
            store_f32(target + GROUP_OF_EIGHT * group, load_f32(x + 64 * group))


@helper
def _add_whole(acc, group, record, place):
    scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
    return add_group(acc, (read_sums(place),), scale, offset, record, SUM, 0)


@helper
def _add_halves(acc, group, record, place):
    scale, offset = load_f32(group + SCALES), load_f32(group + SCALES + 64)
    acc = add_group(acc, (read_sums(place),), scale, offset, record, FIRST_SUM, 0)
    scale, offset = load_f32(group + SCALES + 128), load_f32(group + SCALES + 192)
    return add_group(acc, (read_sums(place + HALF),), scale, offset, record, SECOND_SUM, 0)


def few_tokens(halves: bool) -> Callable[..., Any]:
    """A helper that takes the tokens from `token` on past a block of unpacked groups."""
    add = _add_halves if halves else _add_whole

    @helper
    def scale(instr, row, scratch, unpacked, part, tokens):
        """Add the sums of a part of a block to what each token has so far."""
        (first, last, groups), (token, end) = part, tokens
        stride = load_i64(instr + X_STRIDE) // 4
        place_of_token = scratch + PLACES
        for t in range(token, end):
            partial, acc = scratch + PARTIAL + 64 * t, zeros(ONE)
            if first > 0:
                acc = load_tile(acc, partial, 64)
            record = load_i64(instr + SUMS) + t * stride + 16 * first
            group, place = unpacked, place_of_token
            for _ in range(first, last):
                acc = add(acc, group, record, place)
                group, record, place = group + UNPACKED, record + 16, place + SUMS_OF_GROUP
            if last < groups:
                store_tile(acc, partial, 64)
            else:
                store_result(instr, acc, row, t)
            place_of_token += 128

    @helper
    def few(instr, row, scratch, block, token, count):
        begin, end, groups = block
        x = _place(scratch, count) + begin * GROUP_OF_EIGHT
        while token < count:
            group, own, tokens = scratch, x, (token, min(token + SIDE_BY_SIDE, count))
            for first in range(begin, end, PART):
                unpacked, place, last = group, scratch + PLACES, min(first + PART, end)
                for _ in range(first, last):
                    sum_eight(group, own, place)
                    if halves:
                        sum_eight(group + 256, own + 16, place + HALF)
                    group, place, own = group + UNPACKED, place + SUMS_OF_GROUP, own + GROUP_OF_EIGHT
                scale(instr, row, scratch, unpacked, (first, last, groups), tokens)
            token, x = tokens[1], x + groups * GROUP_OF_EIGHT

    return few
