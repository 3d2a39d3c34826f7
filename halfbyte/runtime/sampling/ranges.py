"""`RANGES`: what each numeric sampling parameter may be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Allowed values of one parameter: `low <= value <= high`."""

    low: float
    high: float
    integer: bool = False
    optional: bool = False

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a finite number"
        low = "" if self.low == -math.inf else f" from {self.low:g}"
        high = "" if self.high == math.inf else f" up to {self.high:g}"
        return f"{kind}{low}{high}{' or None' if self.optional else ''}"

    def holds(self, value: Any) -> bool:
        """Whether `value` is a number of the right kind inside the range; NaN and infinity never are."""
        if value is None:
            return self.optional
        right_kind = isinstance(value, Integral if self.integer else Real) and not isinstance(value, bool)
        if not right_kind or not (self.integer or math.isfinite(value)):
            return False
        return bool(self.low <= value <= self.high)


# Beyond this a changed logit would leave float32.
MOST = 1e6

RANGES = {
    "temperature": Range(-math.inf, math.inf),
    "dynatemp_range": Range(0, math.inf),
    "dynatemp_exponent": Range(0, MOST),
    "top_k": Range(-math.inf, math.inf, integer=True),
    "top_p": Range(0, 1),
    "min_p": Range(0, 1),
    "typical_p": Range(0, 1),
    "top_n_sigma": Range(-math.inf, MOST),
    "xtc_probability": Range(0, 1),
    "xtc_threshold": Range(0, 1),
    "repeat_penalty": Range(1 / MOST, MOST),
    "frequency_penalty": Range(-MOST, MOST),
    "presence_penalty": Range(-MOST, MOST),
    "penalty_last_n": Range(-1, math.inf, integer=True),
    "dry_multiplier": Range(0, MOST),
    "dry_base": Range(1, MOST),
    "dry_allowed_length": Range(1, math.inf, integer=True),
    "dry_penalty_last_n": Range(-1, math.inf, integer=True),
    "mirostat": Range(0, 2, integer=True),
    "mirostat_tau": Range(0, MOST),
    "mirostat_eta": Range(0, MOST),
    "seed": Range(0, 2**64 - 1, integer=True, optional=True),
    "logprobs": Range(0, 20, integer=True, optional=True),
}
