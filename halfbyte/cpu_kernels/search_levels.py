"""The nearest of a table of levels, for 16 values at once."""

from __future__ import annotations

import numpy as np

from .jit import helper
from .memory import load_float
from .ops import add, below, maximum, minimum, same, select_if, sub

_MAGIC = np.float32(1.5 * 2**23)
"""Added and taken away again it leaves whole numbers, halves rounded to even."""


@helper
def rounded(r, low, high):
    """Nearest whole number from `low` to `high`."""
    return sub(add(minimum(maximum(r, low), high), same(_MAGIC)), same(_MAGIC))


@helper
def of_consecutive(r, levels, middles, count):
    """The nearest level where each is one more than the one before."""
    return rounded(r, same(load_float(levels)), same(load_float(levels + 4 * (count - 1))))


@helper
def of_any(r, levels, middles, count):
    """The nearest level, the lower one of two."""
    level = same(load_float(levels))
    for i in range(count - 1):
        level = select_if(below(same(load_float(middles + 4 * i)), r), same(load_float(levels + 4 * i + 4)), level)
    return level


@helper
def index_of_consecutive(r, levels, middles, count):
    """Which level is the nearest where each is one more than the one before."""
    return sub(of_consecutive(r, levels, middles, count), same(load_float(levels)))


@helper
def index_of_any(r, levels, middles, count):
    """Which level is the nearest: how many middles lie below."""
    index = same(0.0)
    for i in range(count - 1):
        index = select_if(below(same(load_float(middles + 4 * i)), r), add(index, same(1.0)), index)
    return index
