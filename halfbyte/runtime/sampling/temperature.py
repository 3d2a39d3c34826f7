"""Temperature, fixed or by how certain the model is."""

from __future__ import annotations

import math

import numpy as np

from .candidates import Candidates, Select, best_of

SHARPEST = 1e-30
"""A temperature at which any difference of logits decides and nothing overflows."""


def temperature(candidates: Candidates, t: float, select: Select) -> Candidates:
    """Logits divided by `t`: below 1 sharper, above 1 flatter."""
    # Relative to the best, so that it stays at 0 however small the temperature is.
    logits, t = candidates.logits, max(t, SHARPEST)
    if isinstance(logits, list):
        best = logits[0]
        return candidates._replace(logits=[(logit - best) / t for logit in logits])
    best = best_of(candidates, 1, select).logits[0]
    with np.errstate(over="ignore", invalid="ignore"):
        return candidates._replace(logits=(logits - logits.dtype.type(best)) / logits.dtype.type(t))


def dynamic_temperature(candidates: Candidates, low: float, high: float, exponent: float) -> float:
    """From `low` where one candidate is certain up to `high` where all are equally likely.

    Between them as their entropy, in shares of the most there can be, to the power `exponent`.
    """
    if len(candidates.ids) < 2:
        return high
    logs = candidates.log_probabilities()
    entropy = -float(np.exp(logs) @ logs) / math.log(len(logs))
    return low + (high - low) * math.pow(min(max(entropy, 0.0), 1.0), exponent)
