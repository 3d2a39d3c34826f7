"""The logarithm of a sum of exponentials, over a row of any size in constant memory."""

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
    row = np.asarray(logits)
    best = row.max()
    if math.isnan(best):
        row = row[~np.isnan(row)]
        best = row.max(initial=-np.inf)
    if not math.isfinite(best):
        raise RequestError(NO_BEST)
    scratch = np.empty(min(SLICE, len(row)), row.dtype)
    total = 0.0
    for start in range(0, len(row), SLICE):
        part = row[start : start + SLICE]
        shares = scratch[: len(part)]
        with np.errstate(over="ignore"):
            np.subtract(part, best, out=shares)
        np.exp(shares, out=shares)
        total += float(shares.sum(dtype=row.dtype))
    return float(best) + math.log(total)
