"""How much an error of each weight counts: the question every search of scales minimises an answer to."""

from __future__ import annotations

import numpy as np

from .block import Floats

_LEAST = 2.0**-40


def error_weights(values: Floats, importance: Floats | None) -> Floats | None:
    """f32[rows, M] (or a view of that shape) for `values` f32[rows, M] and `importance` f32[M]; None for all alike.

    A row's output is a dot product, so an error of its weight in column j adds `error^2 * mean(x_j^2)` to that of the
    output: the importance alone, whatever the weight's own size; with none known, columns are taken to be alike.
    Given in units of the largest; columns that nothing ever came through still count a little, so that what they hold
    is not made up.
    """
    if importance is None:
        return None
    peak = np.max(importance, initial=0)
    if not peak > 0:
        return None
    shares = np.maximum(importance.astype(np.float64) / peak, _LEAST).astype(np.float32)
    return shares[None, :].repeat(len(values), axis=0)
