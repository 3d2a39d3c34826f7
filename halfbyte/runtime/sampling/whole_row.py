"""Sums over a whole row of logits, in constant memory and without sorting it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RequestError
from .candidates import NO_BEST

SLICE = 16384
"""Numbers that stay in a core's nearest caches while they are worked on."""


def log_sum_exp(logits: list[float] | NDArray[np.floating[Any]]) -> float:
    """The natural logarithm of the sum of e^logit over those that are numbers.

    Exponentials are of the array's precision, the sum of slices is float64. Raises `RequestError` where the largest is
    not finite.
    """
    row = _numbers(np.asarray(logits))
    best = float(row.max(initial=-np.inf))
    if not math.isfinite(best):
        raise RequestError(NO_BEST)
    return best + math.log(sum(_sums(row, best)))


def draw_from_row(row: NDArray[np.float32], u: float) -> int:
    """The place at `u` in [0, 1) of the cumulative distribution in order of place; of probability 0 none is drawn.

    Raises as `log_sum_exp`.
    """
    row = np.where(np.isnan(row), -np.inf, row) if math.isnan(row.max()) else row
    best = float(row.max())
    if not math.isfinite(best):
        raise RequestError(NO_BEST)
    sums = _sums(row, best)
    ends = np.cumsum(sums)
    at = min(int(np.searchsorted(ends, u * ends[-1], side="right")), int(np.searchsorted(ends, ends[-1])))
    cumulative = np.exp(row[at * SLICE : (at + 1) * SLICE].astype(np.float64) - best).cumsum()
    place = np.searchsorted(cumulative, max(u * ends[-1] - (ends[at] - sums[at]), 0.0), side="right")
    # The slice's sum was rounded otherwise, so its end may be missed.
    last = np.searchsorted(cumulative, cumulative[-1])
    return at * SLICE + int(min(place, last))


def _numbers(row: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    return row[~np.isnan(row)] if len(row) and math.isnan(row.max()) else row


def _sums(row: NDArray[np.floating[Any]], best: float) -> list[float]:
    """The sum of e^(logit - best) of each slice."""
    scratch = np.empty(min(SLICE, len(row)), row.dtype)
    sums = []
    for start in range(0, len(row), SLICE):
        part = row[start : start + SLICE]
        shares = scratch[: len(part)]
        with np.errstate(over="ignore"):
            np.subtract(part, row.dtype.type(best), out=shares)
        np.exp(shares, out=shares)
        sums.append(float(shares.sum(dtype=row.dtype)))
    return sums
