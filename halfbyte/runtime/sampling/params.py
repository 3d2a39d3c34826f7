"""`SamplingParams`: how the next token is chosen, checked once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

from ...errors import ConfigError, FormatError, reject_unknown


class Range(NamedTuple):
    """Allowed values of one parameter: `low <= value <= high`."""

    low: float
    high: float
    integer: bool = False

    def __str__(self) -> str:
        kind = "an integer" if self.integer else "a finite number"
        low = "" if self.low == -math.inf else f" from {self.low:g}"
        return f"{kind}{low}{'' if self.high == math.inf else f' up to {self.high:g}'}"

    def holds(self, value: Any) -> bool:
        """Whether `value` is a number of the right kind inside the range; NaN and infinity never are."""
        right_kind = isinstance(value, Integral if self.integer else Real) and not isinstance(value, bool)
        if not right_kind or not (self.integer or math.isfinite(value)):
            return False
        return bool(self.low <= value <= self.high)


RANGES = {
    "temperature": Range(-math.inf, math.inf),
    "top_k": Range(-math.inf, math.inf, integer=True),
    "top_p": Range(0, 1),
    "min_p": Range(0, 1),
    # Beyond these a penalised logit would leave float32.
    "repeat_penalty": Range(1e-6, 1e6),
    "frequency_penalty": Range(-1e6, 1e6),
    "presence_penalty": Range(-1e6, 1e6),
    "penalty_last_n": Range(-1, math.inf, integer=True),
    "seed": Range(0, 2**64 - 1, integer=True),
}

METADATA_KEYS = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repeat_penalty",
    "general.sampling.penalty_last_n": "penalty_last_n",
}


@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen.

    Steps run in this order: penalties, top_k, top_p, min_p, temperature. `temperature` 0 or less takes the best token
    (the default: the same prompt gives the same answer); the other defaults are llama.cpp's. Off are `top_k` 0 or
    less, `top_p` 1, `min_p` 0, `repeat_penalty` 1, the two other penalties 0. Penalties look at the last
    `penalty_last_n` tokens, prompt included; -1 is all of them. With `top_k` off the whole vocabulary is sorted, which
    is slower. `seed` None draws one; the same seed gives the same text whatever else runs.

    Raises `ConfigError` that names every value out of range.
    """

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    seed: int | None = None

    def __post_init__(self) -> None:
        problems = dict(self._problems())
        if problems:
            raise ConfigError("; ".join(problems.values()), key=next(iter(problems)))
        for name, allowed in RANGES.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, int(value) if allowed.integer else float(value))

    def _problems(self) -> Iterator[tuple[str, str]]:
        for name, allowed in RANGES.items():
            value = getattr(self, name)
            if not (allowed.holds(value) or (name == "seed" and value is None)):
                yield name, f"{name} must be {allowed}{' or None' if name == 'seed' else ''}, not {value!r}"

    @property
    def greedy(self) -> bool:
        """Whether the best token is taken without drawing."""
        return self.temperature <= 0

    @property
    def penalises(self) -> bool:
        """Whether any penalty changes a logit."""
        changes = (self.repeat_penalty, self.frequency_penalty, self.presence_penalty) != (1.0, 0.0, 0.0)
        return changes and self.penalty_last_n != 0

    def override(self, given: Mapping[str, Any]) -> SamplingParams:
        """These values with `given` in their place; a value of None leaves the one that stands.

        Raises `ConfigError` for an unknown name, naming the nearest one, and for values out of range.
        """
        reject_unknown(given, [f.name for f in fields(self)], "sampling parameter")
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def recommended(metadata: Mapping[str, Any]) -> SamplingParams:
    """The defaults of a model: the library's, with the file's `general.sampling.*` in their place.

    Raises `FormatError` where the file recommends an impossible value.
    """
    given = {name: metadata[key] for key, name in METADATA_KEYS.items() if key in metadata}
    try:
        return SamplingParams().override(given)
    except ConfigError as error:
        raise FormatError(f"metadata general.sampling.*: {error}") from error
