"""`Candidates`: the tokens that can still be chosen, and how they are ranked."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import RequestError

Best = tuple[NDArray[np.int32], NDArray[Any]]
Select = Callable[[NDArray[Any], int], Best]
"""`Executable.top_k`: places and values of the k best of f32[n], best first."""

MOST_SELECTED = 256
"""An executable inserts candidates one by one, which for more of them is slower than sorting."""

SMALL = 4096
"""Of so few logits the best are sorted out here: threads that choose take longer to wake."""

LOWEST = float(np.finfo(np.float32).min)

NO_BEST = "no finite logit for the next token: all tokens are banned, or the weights in the model's file are damaged"

Ids = list[int] | NDArray[np.int32]
Numbers = list[float] | NDArray[np.floating[Any]]
"""A list where there are few: with caches that a model has just swept, NumPy's many small calls cost twice as much."""


class Candidates(NamedTuple):
    """Tokens that can still be chosen: `ids` [n], `logits` [n].

    At first `ranked` is False: all of them by id, or `some`, with logits f32[n] as the model wrote them, NaN and -inf
    among them. Ranked ones stand best first, equals by id, are numbers, and the best is finite.
    """

    ids: Ids
    logits: Numbers
    ranked: bool = True

    @classmethod
    def of_row(cls, row: NDArray[np.float32]) -> Candidates:
        """The whole vocabulary; steps may write to `row`."""
        return cls(_all_ids(len(row)), row, ranked=False)

    @classmethod
    def some(cls, ids: NDArray[np.int32], row: NDArray[np.float32]) -> Candidates:
        """Those that can matter, by ascending id; `row` stays as it is."""
        return cls(ids, row[ids], ranked=False)

    @classmethod
    def best(cls, places: NDArray[np.int32], logits: NDArray[np.float32]) -> Candidates:
        """What `select` gave for a whole row. Raises as `best_of`."""
        places, logits = _numbers(places, logits)
        return cls(places.tolist(), logits.tolist())

    @classmethod
    def decided(cls, ids: list[int], logits: list[float]) -> Candidates:
        """Some of what `select` gave, in its order. Raises as `best_of`."""
        if not math.isfinite(logits[0]):
            raise RequestError(NO_BEST)
        return cls(ids, logits)

    def first(self, count: int) -> Candidates:
        """The first `count`, at least one."""
        count = max(count, 1)
        return Candidates(self.ids[:count], self.logits[:count])

    def beyond(self, count: int) -> Candidates:
        """All but the first `count`, at least one."""
        count = min(max(count, 0), len(self.ids) - 1)
        return Candidates(self.ids[count:], self.logits[count:])

    def take(self, places: NDArray[np.integer[Any]]) -> Candidates:
        """Those at `places`, which ascend."""
        return _few_or_many(np.asarray(self.ids)[places], np.asarray(self.logits)[places])

    def cumulative(self) -> Numbers:
        """The sum of probabilities up to each [n], in units of the best one's. Ranked ones only, as all below."""
        best = self.logits[0]
        if isinstance(self.logits, list):
            return list(accumulate([math.exp(logit - best) for logit in self.logits]))
        return np.exp(self.logits - best).cumsum()

    def log_probabilities(self) -> NDArray[np.float64]:
        """Natural logarithms of the probabilities f64[n]."""
        relative = np.asarray(self.logits, np.float64) - self.logits[0]
        return relative - math.log(np.exp(relative).sum())

    def find(self, tokens: NDArray[np.integer[Any]]) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
        """Which of the distinct `tokens` are candidates: their places in `tokens`, and their places here."""
        if self.ids is _all_ids(len(self.ids)):
            return np.arange(len(tokens)), tokens
        _, wanted, here = np.intersect1d(tokens, self.ids, assume_unique=True, return_indices=True)
        return wanted, here

    def with_logits(self, places: NDArray[np.integer[Any]], logits: NDArray[Any]) -> Candidates:
        """With `logits` at `places`; in place while unranked, so that no other logit is looked at."""
        if not self.ranked:
            assert isinstance(self.logits, np.ndarray)
            self.logits[places] = logits
            return self
        changed = np.array(self.logits, np.float64)
        changed[places] = logits
        return reranked(np.asarray(self.ids, np.int32), changed)


@lru_cache(maxsize=4)
def _all_ids(vocab_size: int) -> NDArray[np.int32]:
    ids = np.arange(vocab_size, dtype=np.int32)
    ids.flags.writeable = False
    return ids


def best_of(candidates: Candidates, k: int, select: Select) -> Candidates:
    """The `k` best, ranked; all of them for `k` 0 or less. NaN and -inf are never among them.

    Raises `RequestError` where the best logit is not a finite number.
    """
    if candidates.ranked:
        return candidates.first(k) if k > 0 else candidates
    ids, logits = candidates.ids, candidates.logits
    assert isinstance(ids, np.ndarray)
    assert isinstance(logits, np.ndarray)
    k = min(k, len(ids)) if k > 0 else len(ids)
    if k == 1:
        # Several times as fast as selecting; NaN would win, and is left to `select`.
        place = int(logits.argmax())
        if math.isfinite(logits[place]):
            return Candidates([int(ids[place])], [float(logits[place])])
    few = k <= MOST_SELECTED
    places, best = _numbers(*(select(logits, k) if few and len(logits) > SMALL else sort_best(logits, k)))
    return Candidates(ids[places].tolist(), best.tolist()) if few else Candidates(ids[places], best.astype(np.float64))


def only_of(best: Best) -> int:
    """The token of what `select` gave for a k of 1. Raises as `best_of`."""
    places, logits = best
    if len(places) == 0 or not math.isfinite(logits[0]):
        raise RequestError(NO_BEST)
    return int(places[0])


def above(candidates: Candidates, floor: float, select: Select) -> Candidates:
    """Those with a logit of at least `floor`, ranked, always the best. Of a whole row no more than these are sorted."""
    if candidates.ranked:
        return candidates.first(int(np.count_nonzero(np.asarray(candidates.logits) >= floor)))
    row = np.asarray(candidates.logits)
    places = np.flatnonzero(row >= np.float32(max(floor, LOWEST)))
    if len(places) == 0:
        return best_of(candidates, 1, select)
    return best_of(Candidates(np.asarray(candidates.ids)[places], row[places], ranked=False), 0, select)


def reranked(ids: NDArray[np.integer[Any]], logits: NDArray[np.floating[Any]]) -> Candidates:
    """Candidates [n] in any order, ranked. Raises as `best_of`."""
    order = np.lexsort((ids, -logits))
    order = order[logits[order] > -np.inf]
    return _few_or_many(*_numbers(ids[order].astype(np.int32), logits[order].astype(np.float64)))


def _few_or_many(ids: NDArray[np.int32], logits: NDArray[np.float64]) -> Candidates:
    return Candidates(ids.tolist(), logits.tolist()) if len(ids) <= MOST_SELECTED else Candidates(ids, logits)


def draw(candidates: Candidates, u: float) -> int:
    """The token at `u` in [0, 1) of the cumulative distribution; one of probability 0 is never drawn."""
    cumulative = candidates.cumulative()
    place = bisect_right(cumulative, u * cumulative[-1])
    return int(candidates.ids[min(place, len(cumulative) - 1)])


def _numbers(places: NDArray[np.int32], logits: NDArray[Any]) -> Best:
    """Ranked candidates without those of -inf. Raises as `best_of`."""
    if len(logits) == 0 or not math.isfinite(logits[0]):
        raise RequestError(NO_BEST)
    if logits[-1] == -np.inf:
        return places[logits > -np.inf], logits[logits > -np.inf]
    return places, logits


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
