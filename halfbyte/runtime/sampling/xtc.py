"""Exclude top choices: now and then leave out all likely tokens but the least likely of them."""

from __future__ import annotations

import numpy as np

from .candidates import Candidates

MOST_FOR_TWO = 0.5
"""Above this share no two tokens are likely at once, and the step is off."""


def xtc(candidates: Candidates, threshold: float) -> Candidates:
    """Of those at least `threshold` likely the last, and the rest."""
    likely = int(np.count_nonzero(np.exp(candidates.log_probabilities()) >= threshold))
    return candidates.beyond(likely - 1)
