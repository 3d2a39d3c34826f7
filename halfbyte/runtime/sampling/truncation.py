"""Steps that leave candidates out, meaning and order as in llama.cpp's chain."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from operator import neg
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates, Select, above, best_of
from .whole_row import log_sum_exp


def top_p(candidates: Candidates, p: float, select: Select) -> Candidates:
    """The fewest best whose probabilities sum to at least `p`."""
    if p >= 1:
        return candidates
    if candidates.ranked:
        cumulative = candidates.cumulative()
        return candidates.first(bisect_left(cumulative, p * cumulative[-1]) + 1)
    whole = log_sum_exp(candidates.logits)
    # All tokens below this floor together have less than 1 - p, so the others reach p and they alone are sorted.
    likely = above(candidates, whole + math.log((1 - p) / len(candidates.ids)), select)
    return likely.first(bisect_left(likely.cumulative(), p * math.exp(whole - likely.logits[0])) + 1)


def min_p(candidates: Candidates, p: float, select: Select) -> Candidates:
    """Those at least `p` times as likely as the best."""
    if p <= 0:
        return candidates
    if not candidates.ranked:
        return above(candidates, best_of(candidates, 1, select).logits[0] + math.log(p), select)
    floor = candidates.logits[0] + math.log(p)
    return candidates.first(bisect_right(candidates.logits, -floor, key=neg))


def top_n_sigma(candidates: Candidates, n: float, select: Select) -> Candidates:
    """Those whose logit is at most `n` standard deviations of all logits below the best; all for `n` 0 or less.

    Source: Tang et al., "Top-n-sigma: not all logits are you need", 2024.
    """
    logits = np.asarray(candidates.logits)
    if n <= 0 or len(logits) < 2:
        return candidates
    best = best_of(candidates, 1, select).logits[0]
    return above(candidates, best - n * _deviation(logits), select)


def _deviation(logits: NDArray[np.floating[Any]]) -> float:
    """The standard deviation of those that are numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(logits.std(dtype=logits.dtype))
    if math.isfinite(deviation):
        return deviation
    return float(logits[np.isfinite(logits)].std(dtype=np.float64))


def typical_p(candidates: Candidates, p: float) -> Candidates:
    """The fewest that sum to more than `p`, those first whose surprise is nearest to the expected one.

    The best may be left out. Source: Meister et al., "Locally typical sampling", 2022.
    """
    if p >= 1:
        return candidates
    surprise = -candidates.log_probabilities()
    shares = np.exp(-surprise)
    order = np.argsort(np.abs(surprise - shares @ surprise), kind="stable")
    count = int(np.searchsorted(shares[order].cumsum(), p, side="right")) + 1
    return candidates.take(np.sort(order[:count]))
