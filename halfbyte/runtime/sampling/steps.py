"""The steps of sampling: small functions from candidates to candidates.

Order and meaning follow llama.cpp's sampler chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .params import SamplingParams
from .window import PenaltyWindow

Select = Callable[[NDArray[np.float32], int], tuple[NDArray[np.int32], NDArray[np.float32]]]
"""`Executable.top_k`: places and values of the k best of f32[n], best first."""


MOST_SELECTED = 256
"""An executable inserts candidates one by one, which for more of them is slower than sorting."""


class Candidates(NamedTuple):
    """Tokens that can still be chosen: `ids` i32[n], `logits` f32[n]; by id at first, best first after `top_k`."""

    ids: NDArray[np.int32]
    logits: NDArray[np.float32]

    def first(self, count: int) -> Candidates:
        """The first `count`, at least one."""
        count = max(count, 1)
        return Candidates(self.ids[:count], self.logits[:count])


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Softmax of f32[n], best first."""
    weights: NDArray[np.float64] = np.exp(logits.astype(np.float64) - float(logits[0]))
    weights /= weights.sum()
    return weights


def penalties(candidates: Candidates, window: PenaltyWindow, params: SamplingParams) -> Candidates:
    """Lower the logits of the window's tokens, in place: no other logit is looked at. Runs while order is by id."""
    logits = candidates.logits
    seen = logits[window.ids]
    repeat = np.float32(params.repeat_penalty)
    with np.errstate(over="ignore"):
        seen = np.where(seen <= 0, seen * repeat, seen / repeat)
        seen -= window.counts * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
    logits[window.ids] = seen
    return candidates


def top_k(candidates: Candidates, k: int, select: Select) -> Candidates:
    """The `k` best, best first; all of them for `k` 0 or less."""
    count = len(candidates.ids)
    k = min(k, count) if k > 0 else count
    places, logits = select(candidates.logits, k) if k <= MOST_SELECTED else sort_best(candidates.logits, k)
    return Candidates(candidates.ids[places], logits)


def sort_best(logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
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
    return candidates.first(int(probabilities(candidates.logits).cumsum().searchsorted(p)) + 1)


def min_p(candidates: Candidates, p: float) -> Candidates:
    """Those at least `p` times as likely as the best."""
    if p <= 0:
        return candidates
    floor = float(candidates.logits[0]) + math.log(p)
    return candidates.first(int(np.count_nonzero(candidates.logits >= floor)))


def temperature(candidates: Candidates, t: float) -> Candidates:
    """Logits divided by `t`: below 1 sharper, above 1 flatter."""
    if t == 1:
        return candidates
    # Relative to the best, so that a temperature near 0 leaves it at 0 and sends the others to -inf.
    with np.errstate(over="ignore"):
        scaled = (candidates.logits.astype(np.float64) - float(candidates.logits[0])) / t
        return Candidates(candidates.ids, scaled.astype(np.float32))


def draw(candidates: Candidates, u: float) -> int:
    """The token at `u` in [0, 1) of the cumulative distribution; one of probability 0 is never drawn."""
    cumulative = probabilities(candidates.logits).cumsum()
    place = int(cumulative.searchsorted(u * cumulative[-1], side="right"))
    return int(candidates.ids[min(place, len(cumulative) - 1)])
