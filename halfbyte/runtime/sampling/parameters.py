"""`PARAMETERS`: what each numeric sampling parameter is for and may be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, NamedTuple

# Beyond this a changed logit would leave float32.
MOST = 1e6


def as_float(number: Real) -> float:
    """NaN for what a float cannot hold."""
    try:
        return float(number)
    except OverflowError:
        return math.nan


class Parameter(NamedTuple):
    """A number with `low <= value <= high`, whole where `integer`; None as well where `optional`."""

    what: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    integer: bool = False
    optional: bool = False

    @property
    def range(self) -> str:
        """Where a value may lie, in words."""
        low = "" if self.low == -math.inf else f" from {self.low:g}"
        return f"{low}{'' if self.high == math.inf else f' up to {self.high:g}'}"

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a finite number"
        return f"{kind}{self.range}{' or None' if self.optional else ''}"

    def holds(self, value: Any) -> bool:
        """Whether `value` is a number of the right kind inside the range; NaN and infinity never are."""
        if value is None:
            return self.optional
        right_kind = isinstance(value, Integral if self.integer else Real) and not isinstance(value, bool)
        if not right_kind or not (self.integer or math.isfinite(as_float(value))):
            return False
        return bool(self.low <= value <= self.high)


PARAMETERS = {
    "temperature": Parameter("how freely to choose; 0 takes the likeliest token each time", "ratio"),
    "dynatemp_range": Parameter("how far temperature moves to both sides with the model's doubt", "ratio", 0),
    "dynatemp_exponent": Parameter("how temperature follows the model's doubt", "power", 0, MOST),
    "top_k": Parameter("choose among this many likeliest tokens; 0 is all", "tokens", integer=True),
    "top_p": Parameter("choose among the likeliest tokens that together reach this", "probability", 0, 1),
    "min_p": Parameter("leave out tokens below this share of the likeliest one's probability", "ratio", 0, 1),
    "typical_p": Parameter(
        "choose among tokens of about the expected surprise that together reach this; 1 is off", "probability", 0, 1
    ),
    "top_n_sigma": Parameter(
        "leave out logits further below the best; 0 or less is off", "standard deviations", -math.inf, MOST
    ),
    "xtc_probability": Parameter("how often to leave out all likely tokens but the last", "probability", 0, 1),
    "xtc_threshold": Parameter("which tokens are likely; more than 0.5 is off", "probability", 0, 1),
    "repeat_penalty": Parameter("divides logits of recent tokens; 1 is off", "ratio", 1 / MOST, MOST),
    "frequency_penalty": Parameter("lowers recent tokens for each time they occurred", "logits", -MOST, MOST),
    "presence_penalty": Parameter("lowers recent tokens once", "logits", -MOST, MOST),
    "penalty_last_n": Parameter("how many tokens are recent; -1 is all", "tokens", -1, integer=True),
    "dry_multiplier": Parameter("lowers tokens that go on with a repetition; 0 is off", "logits", 0, MOST),
    "dry_base": Parameter("the same grows by this with each token of the repetition", "ratio", 1, MOST),
    "dry_allowed_length": Parameter("shortest repetition that counts", "tokens", 1, integer=True),
    "dry_penalty_last_n": Parameter("where repetitions are looked for; -1 is everywhere", "tokens", -1, integer=True),
    "mirostat": Parameter("draw with Mirostat 1 or 2 instead of cutting; 0 is off", "version", 0, 2, integer=True),
    "mirostat_tau": Parameter("how much Mirostat's tokens surprise", "bits", 0, MOST),
    "mirostat_eta": Parameter("how fast Mirostat follows", "ratio", 0, MOST),
    "seed": Parameter("same seed, same answer", "number", 0, 2**64 - 1, integer=True, optional=True),
    "logprobs": Parameter(
        "report each token's log probability and those of so many likeliest",
        "tokens",
        0,
        20,
        integer=True,
        optional=True,
    ),
}
