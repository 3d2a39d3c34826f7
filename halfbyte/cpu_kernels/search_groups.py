"""16 groups side by side in the units of a search: read, turned, scaled, and their results written.

The scratch holds the weights of 16 groups, behind them how much each error counts, behind them the products of both.
"""

from __future__ import annotations

import numpy as np

from ..quant.search import TINY
from .jit import helper
from .memory import store_float
from .ops import add, below, div, lane, load_f32, maximum, minimum, mul, same, select_if, store_f32, sub
from .transpose import transpose

_INFINITE = np.float32(np.inf)


@helper
def turn(source, target, length, last):
    """`length` columns of 16 rows; the greatest and the least of each.

    Reads 16 columns at least. A last incomplete 16 is read with the columns before it, and those before are written
    again.
    """
    for c in range(0, length, 16):
        first = max(0, min(c, length - 16))
        transpose(source + 4 * first, 4 * length, last, target + 64 * first)
    high, low = same(-_INFINITE), same(_INFINITE)
    for i in range(target, target + 64 * length, 64):
        v = load_f32(i)
        high, low = maximum(high, v), minimum(low, v)
    return high, low


@helper
def units(target, size, zero, inverse, most):
    """Weights to `(x - zero) * inverse`, errors to units of the largest, products behind; returns both sums."""
    ones, tiny = same(1.0), same(TINY)
    uncounted = below(most, tiny)
    share = div(ones, select_if(uncounted, ones, most))
    sum_w, sum_y = same(0.0), same(0.0)
    for i in range(target, target + size, 64):
        y = mul(sub(load_f32(i), zero), inverse)
        w = select_if(uncounted, ones, mul(load_f32(i + size), share))
        product = mul(w, y)
        store_f32(i, y)
        store_f32(i + size, w)
        store_f32(i + 2 * size, product)
        sum_w, sum_y = add(sum_w, w), add(sum_y, product)
    return sum_w, sum_y


@helper
def store(target, v, lanes):
    """The first lanes: what lies behind may belong to others."""
    if lanes == 16:
        store_f32(target, v)
    else:
        for i in range(lanes):
            store_float(target + 4 * i, lane(v, i))
