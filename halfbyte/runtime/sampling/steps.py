"""The steps of sampling: small functions from candidates to candidates.

Order and meaning follow llama.cpp's sampler chain.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate
from operator import neg
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .params import SamplingParams
from .window import PenaltyWindow

Select = Callable[[NDArray[Any], int], tuple[NDArray[np.int32], NDArray[Any]]]
"""`Executable.top_k`: places and values of the k best of f32[n], best first."""


MOST_SELECTED = 256
"""An executable inserts candidates one by one, which for more of them is slower than sorting."""

SHARPEST = 1e-100
"""A temperature at which any difference of logits decides and nothing overflows."""

Numbers = list[float] | NDArray[np.floating[Any]]
"""A list where there are few: with caches that a model has just swept, NumPy's many small calls cost twice as much."""


class Candidates(NamedTuple):
    """Tokens that can still be chosen: `ids` [n], `logits` [n].

    At first all of them by id, with the row of logits f32 as the model wrote it; after `top_k` best first.
    """

    ids: list[int] | NDArray[np.int32]
    logits: Numbers

    def first(self, count: int) -> Candidates:
        """The first `count`, at least one."""
        count = max(count, 1)
        return Candidates(self.ids[:count], self.logits[:count])

    def cumulative(self) -> Numbers:
        """The sum of probabilities up to each [n], in units of the best one's."""
        best = self.logits[0]
        if isinstance(self.logits, list):
            return list(accumulate([math.exp(logit - best) for logit in self.logits]))
        return np.exp(self.logits - best).cumsum()


def penalties(candidates: Candidates, window: PenaltyWindow, params: SamplingParams) -> Candidates:
    """Lower the logits of the window's tokens, in place: no other logit is looked at. Runs while order is by id."""
    logits = candidates.logits
    assert isinstance(logits, np.ndarray)
    seen = logits[window.ids]
    repeat = np.float32(params.repeat_penalty)
    with np.errstate(over="ignore"):
        seen = np.where(seen <= 0, seen * repeat, seen / repeat)
        seen -= window.counts * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
    logits[window.ids] = seen
    return candidates


def top_k(candidates: Candidates, k: int, select: Select) -> Candidates:
    """The `k` best; all of them for `k` 0 or less. NaN and -inf are never among them."""
    ids, logits = np.asarray(candidates.ids), np.asarray(candidates.logits)
    k = min(k, len(ids)) if k > 0 else len(ids)
    if k == 1:
        # Several times as fast as selecting; NaN would win, and is left to `select`.
        place = int(logits.argmax())
        if math.isfinite(logits[place]):
            return Candidates([int(ids[place])], [float(logits[place])])
    if k <= MOST_SELECTED:
        places, best = select(logits, k)
        return Candidates(ids[places].tolist(), best.tolist())
    places, best = sort_best(logits, k)
    return Candidates(ids[places], best.astype(np.float64))


def sort_best(logits: NDArray[Any], k: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """What `Select` gives, for any `k`: equals in order of place, NaN and -inf left out."""
    places = np.flatnonzero(logits > -np.inf).astype(np.int32)
    if k < len(places):
        values = logits[places]
        worst = np.partition(values, len(values) - k)[len(values) - k]
        places = places[values >= worst]
    # Value and place as one number: sorting numbers is vectorised, and several times as fast as a stable argsort.
    bits = (0.0 - logits[places]).view(np.int32)
    ascending = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64)
    keys = np.sort(ascending << 32 | places)[:k]
    places = (keys & 0xFFFFFFFF).astype(np.int32)
    return places, logits[places]


def top_p(candidates: Candidates, p: float) -> Candidates:
    """The fewest best whose probabilities sum to at least `p`."""
    if p >= 1:
        return candidates
    cumulative = candidates.cumulative()
    return candidates.first(bisect_left(cumulative, p * cumulative[-1]) + 1)


def min_p(candidates: Candidates, p: float) -> Candidates:
    """Those at least `p` times as likely as the best."""
    if p <= 0:
        return candidates
    floor = candidates.logits[0] + math.log(p)
    return candidates.first(bisect_right(candidates.logits, -floor, key=neg))


def temperature(candidates: Candidates, t: float) -> Candidates:
    """Logits divided by `t`: below 1 sharper, above 1 flatter."""
    ids, logits = candidates
    # Relative to the best, so that it stays at 0 however small the temperature is.
    best, t = logits[0], max(t, SHARPEST)
    if isinstance(logits, list):
        return Candidates(ids, [(logit - best) / t for logit in logits])
    return Candidates(ids, (logits - best) / t)


def draw(candidates: Candidates, u: float) -> int:
    """The token at `u` in [0, 1) of the cumulative distribution; one of probability 0 is never drawn."""
    cumulative = candidates.cumulative()
    place = bisect_right(cumulative, u * cumulative[-1])
    return int(candidates.ids[min(place, len(cumulative) - 1)])
