"""`HitRates`: how often a token came that was expected, by how much spoke for it."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = 7
TRUST = 4.0
"""Observations that what is known beforehand weighs as much as."""


def level_of(agreeing: int) -> int:
    """The level of an expectation that `agreeing` tokens before it speak for: 0, 1, 2-3, 4-7, 8-15, 16-31, more."""
    return min(agreeing.bit_length(), LEVELS - 1)


LEVEL_OF = [level_of(agreeing) for agreeing in range(128)]
"""A table of `level_of`, which is the same from its end on."""


class HitRates:
    """Averages by level, of which the latest about `memory` observations of each count; they start from `prior`.

    `rates` are how likely the next expectation of each level comes true.
    """

    def __init__(self, memory: float, prior: Sequence[float]) -> None:
        self.rates = list(prior)
        self._prior = tuple(prior)
        self._keep = 1 - 1 / memory
        self._hits = [0.0] * LEVELS
        self._seen = [0.0] * LEVELS

    def note(self, level: int, hit: bool) -> None:
        """Learn from one expectation of `level`."""
        hits = self._hits[level] = self._hits[level] * self._keep + hit
        seen = self._seen[level] = self._seen[level] * self._keep + 1
        self.rates[level] = (hits + TRUST * self._prior[level]) / (seen + TRUST)

    def fade(self, keep: float) -> None:
        """Trust what was seen a little less."""
        self._hits = [keep * hits for hits in self._hits]
        self._seen = [keep * seen for seen in self._seen]
        known = zip(self._hits, self._seen, self._prior, strict=True)
        self.rates = [(hits + TRUST * prior) / (seen + TRUST) for hits, seen, prior in known]
