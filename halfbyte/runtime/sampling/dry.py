"""`Repetitions`: how long the end of a sequence repeats what stood before in it, for the `dry` step.

Source: "DRY: a modern repetition penalty", text-generation-webui, 2024; meaning as in llama.cpp's chain.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .breakers import Breakers
from .candidates import Candidates
from .params import SamplingParams

GREATEST = 1e30
"""Beyond this a penalised logit would leave float32."""

GREATEST_LOG = 88.7
"""Where llama.cpp stops to raise `dry_base` to higher powers: they would leave float32."""


class Repetitions:
    """Moved on by one token at a cost that depends on `length` alone: the number of last tokens looked at.

    With the last token at place 0, the one before at 1 and so on, `_lengths[m]` says how many of the tokens from m + 1
    on equal those from 0 on: a token equal to that at m would make this repetition one longer. A repetition keeps its m
    while it grows, so nothing is moved. Tokens are written backwards into memory twice as long as the window.
    """

    def __init__(self, length: int, prompt: NDArray[np.integer[Any]], breakers: Breakers, longest: int) -> None:
        """Repetitions in `prompt` longer than `longest` are taken to be that long."""
        assert length > 0
        recent = prompt[-length:][::-1]
        self.breakers = breakers
        self._length = length
        self._tokens = np.empty(2 * length, np.int32)
        self._start = 2 * length - len(recent)
        self._tokens[self._start :] = recent
        self._lengths = _lengths(self.recent, length, longest)
        ends = (place for place in range(len(recent)) if breakers.end_with(recent[place:]))
        self._since_break = next(ends, len(recent))

    def fork(self) -> Repetitions:
        """A copy that goes its own way."""
        twin = copy.copy(self)
        twin._tokens, twin._lengths = self._tokens.copy(), self._lengths.copy()
        return twin

    @property
    def recent(self) -> NDArray[np.int32]:
        """The last tokens [n], newest first."""
        return self._tokens[self._start : self._start + self._length]

    def push(self, token: int) -> None:
        """Let `token` in and, where the window is full, the oldest one out."""
        recent = self.recent[: self._length - 1]
        lengths = self._lengths[: len(recent)]
        lengths += 1
        lengths *= recent == token
        if self._start == 0:
            self._start = self._length + 1
            self._tokens[self._start :] = recent
        self._start -= 1
        self._tokens[self._start] = token
        self._since_break = 0 if self.breakers.end_with(self.recent) else self._since_break + 1

    def continued_by(self, shortest: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Distinct tokens that would go on with a repetition of at least `shortest`, and the longest for each.

        No repetition reaches over a breaker, and none is continued by one.
        """
        recent = self.recent
        places = np.flatnonzero(self._lengths[: max(len(recent) - 1, 0)] >= shortest)
        if len(places) == 0 or self._since_break < shortest:
            return _NONE, _NONE
        in_window = len(recent) - 1 - places
        lengths = np.minimum(np.minimum(self._lengths[places], in_window), self._since_break).astype(np.int32)
        tokens, which = np.unique(recent[places], return_inverse=True)
        longest = np.zeros(len(tokens), np.int32)
        np.maximum.at(longest, which, lengths)
        counts = longest >= shortest
        counts &= [not self.breakers.within(token) for token in tokens.tolist()]
        return tokens[counts], longest[counts]


_NONE = np.empty(0, np.int32)


def _lengths(recent: NDArray[np.int32], size: int, longest: int) -> NDArray[np.int32]:
    """What `push` would have counted, i32[size], by comparing one place after the other."""
    lengths = np.zeros(size, np.int32)
    going = np.arange(max(len(recent) - 1, 0))
    for back in range(min(len(recent), longest)):
        going = going[: np.searchsorted(going, len(recent) - 1 - back)]
        going = going[recent[going + 1 + back] == recent[back]]
        if len(going) == 0:
            break
        lengths[going] += 1
    return lengths


def longest_counted(params: SamplingParams) -> int:
    """The length from which on the penalty does not grow."""
    growing = GREATEST_LOG / math.log(params.dry_base) if params.dry_base > 1 else 0.0
    return params.dry_allowed_length + int(min(growing, 1e9))


def dry(candidates: Candidates, repetitions: Repetitions, params: SamplingParams) -> Candidates:
    """Lower tokens that go on with a repetition, by `dry_multiplier` * `dry_base` ** (its length - allowed length)."""
    tokens, lengths = repetitions.continued_by(params.dry_allowed_length)
    if len(tokens) == 0:
        return candidates
    beyond = np.minimum(lengths, longest_counted(params)) - params.dry_allowed_length
    lower = np.minimum(params.dry_multiplier * params.dry_base ** np.float64(beyond), GREATEST)
    wanted, here = candidates.find(tokens)
    logits = np.asarray(candidates.logits)[here]
    return candidates.with_logits(here, logits - lower[wanted].astype(logits.dtype))
