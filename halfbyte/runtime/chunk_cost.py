"""`ChunkCost`: what reading a piece of a prompt adds to a step, learnt from steps."""

from __future__ import annotations

KEPT = 0.85
"""Of what was learnt before, when something new comes: some six steps count."""
SPREAD = 0.2
"""Sizes that differ by less, relative to their mean, say nothing about a cost that all have."""


class ChunkCost:
    """Seconds as `base + per_token * tokens`, the best line through the last measurements."""

    def __init__(self) -> None:
        self._weight = self._tokens = self._squares = self._seconds = self._products = 0.0
        self.largest = 0.0

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return self._weight > 0

    def note(self, tokens: int, seconds: float) -> None:
        """`tokens` added `seconds` to a step."""
        self._weight = KEPT * self._weight + 1
        self._tokens = KEPT * self._tokens + tokens
        self._squares = KEPT * self._squares + tokens * tokens
        self._seconds = KEPT * self._seconds + seconds
        self._products = KEPT * self._products + tokens * seconds
        self.largest = max(KEPT * self.largest, tokens)

    def fit(self) -> tuple[float, float]:
        """`base` and `per_token`; all of it by token where the sizes were too much alike to tell."""
        mean, through_zero = self._tokens / self._weight, self._seconds / self._tokens
        variance = self._squares / self._weight - mean * mean
        if variance < (SPREAD * mean) ** 2:
            return 0.0, through_zero
        covariance = self._products / self._weight - mean * self._seconds / self._weight
        per_token = min(max(covariance / variance, 0.05 * through_zero), through_zero)
        return self._seconds / self._weight - per_token * mean, per_token
