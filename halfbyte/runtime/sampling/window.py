"""`PenaltyWindow`: how often each token occurred lately."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class PenaltyWindow:
    """Counts of the tokens among the last `length`, moved on by one token in constant time.

    `ids` and `counts` list each distinct token once, in no particular order.
    """

    def __init__(self, length: int, tokens: Iterable[int] = ()) -> None:
        assert length > 0
        self.length = length
        self._recent: deque[int] = deque()
        self._place: dict[int, int] = {}
        self._ids = np.empty(length, np.intp)
        self._counts = np.empty(length, np.float32)
        for token in tokens:
            self.push(token)

    def fork(self) -> PenaltyWindow:
        """A copy that goes its own way."""
        twin = copy.copy(self)
        twin._recent, twin._place = self._recent.copy(), self._place.copy()
        twin._ids, twin._counts = self._ids.copy(), self._counts.copy()
        return twin

    @property
    def ids(self) -> NDArray[np.intp]:
        """The distinct tokens [n]."""
        return self._ids[: len(self._place)]

    @property
    def counts(self) -> NDArray[np.float32]:
        """How often each of `ids` occurs [n]."""
        return self._counts[: len(self._place)]

    def push(self, token: int) -> None:
        """Let `token` in and, where the window is full, the oldest one out."""
        if len(self._recent) == self.length:
            self._drop(self._recent.popleft())
        self._recent.append(token)
        place = self._place.get(token)
        if place is None:
            place = self._place[token] = len(self._place)
            self._ids[place], self._counts[place] = token, 0
        self._counts[place] += 1

    def _drop(self, token: int) -> None:
        place = self._place[token]
        self._counts[place] -= 1
        if self._counts[place] > 0:
            return
        last = len(self._place) - 1
        moved = int(self._ids[last])
        self._ids[place], self._counts[place] = moved, self._counts[last]
        self._place[moved] = place
        del self._place[token]
