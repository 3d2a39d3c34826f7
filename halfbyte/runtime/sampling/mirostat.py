"""`Mirostat`: cuts candidates so that what is drawn surprises by a wanted amount on average.

Source: Basu et al., "Mirostat: a neural text decoding algorithm that directly controls perplexity", 2021.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from .candidates import Candidates, Select, above, best_of
from .whole_row import log_sum_exp

MOST_ESTIMATED = 100
"""Version 1 estimates the distribution's slope from so many best."""


class Mirostat:
    """`tau` is the surprise wanted, `eta` how fast the bound `mu` follows; all in bits. `version` is 1 or 2.

    Between `cut` and `accept` it holds what was cut; state changes in `accept` alone.
    """

    def __init__(self, version: int, tau: float, eta: float) -> None:
        self.version = version
        self.tau = tau
        self.eta = eta
        self.mu = 2 * tau
        self._cut: Candidates | None = None

    def fork(self) -> Mirostat:
        """A copy that goes its own way."""
        return copy.copy(self)

    def cut(self, candidates: Candidates, select: Select) -> Candidates:
        """The candidates to draw from."""
        self._cut = self._by_slope(candidates, select) if self.version == 1 else self._by_surprise(candidates, select)
        return self._cut

    def accept(self, token: int) -> None:
        """Learn from the token that was drawn of the last cut; of one from elsewhere there is nothing to learn."""
        if self._cut is not None:
            places = np.flatnonzero(np.asarray(self._cut.ids) == token)
            if len(places):
                surprise = -float(self._cut.log_probabilities()[places[0]]) / math.log(2)
                self.mu -= self.eta * (surprise - self.tau)
            self._cut = None

    def _by_slope(self, candidates: Candidates, select: Select) -> Candidates:
        vocab_size = len(candidates.ids)
        logits = np.asarray(best_of(candidates, MOST_ESTIMATED, select).logits, np.float64)
        if len(logits) < 2:
            return best_of(candidates, 1, select)
        steps = np.log(np.arange(2, len(logits) + 1) / np.arange(1, len(logits)))
        slope = max(float(steps @ -np.diff(logits) / (steps @ steps)), 1e-9)
        return best_of(candidates, _count(slope, self.mu, vocab_size), select)

    def _by_surprise(self, candidates: Candidates, select: Select) -> Candidates:
        """Those whose surprise is at most `mu`, at least the best."""
        return above(candidates, log_sum_exp(candidates.logits) - self.mu * math.log(2), select)


def _count(slope: float, mu: float, vocab_size: int) -> int:
    """How many of a Zipf distribution with this exponent keep the surprise at `mu` bits."""
    excess = slope - 1
    size = math.log(vocab_size)
    ratio = excess / -math.expm1(-excess * size) if abs(excess) > 1e-12 else 1 / size
    exponent = (math.log(ratio) + mu * math.log(2)) / slope
    return vocab_size if exponent >= size else max(int(math.exp(exponent)), 1)
