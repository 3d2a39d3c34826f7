"""`HitRates`: how often a token came that was expected, by how much spoke for it."""

from __future__ import annotations

LEVELS = 7
TRUST = 4.0
"""Observations that what is known beforehand weighs as much as."""


def level_of(agreeing: int) -> int:
    """The level of an expectation that `agreeing` tokens before it speak for: 0, 1, 2-3, 4-7, 8-15, 16-31, more."""
    return min(agreeing.bit_length(), LEVELS - 1)


class HitRates:
    """Averages of which the latest about `memory` observations of a level count.

    They start from `prior`: numbers, or other rates, which learn from all that these do.
    """

    def __init__(self, memory: float, prior: HitRates | tuple[float, ...]) -> None:
        self._keep = 1 - 1 / memory
        self._prior = prior
        self._hits = [0.0] * LEVELS
        self._seen = [0.0] * LEVELS

    def note(self, level: int, hit: bool) -> None:
        """Learn from one expectation of `level`."""
        self._hits[level] = self._hits[level] * self._keep + hit
        self._seen[level] = self._seen[level] * self._keep + 1
        if isinstance(self._prior, HitRates):
            self._prior.note(level, hit)

    def fade(self, keep: float) -> None:
        """Trust what was seen a little less."""
        self._hits = [keep * hits for hits in self._hits]
        self._seen = [keep * seen for seen in self._seen]
        if isinstance(self._prior, HitRates):
            self._prior.fade(keep)

    def rate(self, level: int) -> float:
        """How likely the next expectation of `level` comes true."""
        prior = self._prior.rate(level) if isinstance(self._prior, HitRates) else self._prior[level]
        return (self._hits[level] + TRUST * prior) / (self._seen[level] + TRUST)
