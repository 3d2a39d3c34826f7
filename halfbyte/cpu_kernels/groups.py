"""One group of 32 columns times a tile of tokens: the float operations whose order every path shares.

`scales` is what a format gives: scale and offset of the group, or those of its two halves. A token's record at `sums`
holds its scale, its scaled sum over the group, and those over the halves.
"""

from __future__ import annotations

from .jit import helper
from .tiles import add_group

SUM, FIRST_SUM, SECOND_SUM = 4, 8, 12


@helper
def multiply_whole(acc, dot, chunks, scales, x, sums, stride):
    """A group with one scale and offset."""
    return add_group(acc, dot(acc, chunks, x, stride), scales[0], scales[1], sums, SUM, stride // 4)


@helper
def multiply_halves(acc, dot, chunks, scales, x, sums, stride):
    """A group whose halves have their own."""
    acc = add_group(acc, dot(acc, chunks[:4], x, stride), scales[0], scales[1], sums, FIRST_SUM, stride // 4)
    return add_group(acc, dot(acc, chunks[4:], x + 16, stride), scales[2], scales[3], sums, SECOND_SUM, stride // 4)
