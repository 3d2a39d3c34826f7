"""How much an error of each weight counts: the question every search of scales minimises an answer to."""

from __future__ import annotations

import numpy as np

from .block import Floats

_LEAST = 2.0**-40


def error_weights(values: Floats, importance: Floats | None) -> Floats:
    """f32[rows, M] for `values` f32[rows, M] and `importance` f32[M].

    A row's output is a dot product, so an error of its weight in column j adds `error^2 * mean(x_j^2)` to that of the
    output: the importance alone, whatever the weight's own size. Given in units of the largest; columns that nothing
    ever came through still count a little, so that what they hold is not made up.
    """
    peak = 0 if importance is None else np.max(importance, initial=0)
    if importance is None or not peak > 0:
        return _by_size(values)
    shares = np.maximum(importance.astype(np.float64) / peak, _LEAST).astype(np.float32)
    return shares[None, :].repeat(len(values), axis=0)


def _by_size(values: Floats) -> Floats:
    """The square of each weight and, as much again on average, that of its row.

    Where nothing is known of what comes through the columns, large weights tell: they grew where inputs are large, and
    an output that few of them make is off by what they are off. Counting all alike leaves less error in the weights
    and more in what the model says: a third more divergence in 4 bits, a fifth in 3 and 2.
    """
    peak = np.maximum(values.max(axis=1, keepdims=True, initial=0), -values.min(axis=1, keepdims=True, initial=0))
    shares = values * (np.float32(1) / np.where(peak < np.float32(2.0**-120), np.float32(1), peak))
    squares: Floats = np.square(shares, dtype=np.float32)
    squares += squares.mean(axis=1, keepdims=True)
    return squares
