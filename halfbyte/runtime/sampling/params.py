"""`SamplingParams`: how the next token is chosen, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, FormatError, reject_unknown
from .checks import bias_problem, breakers_problem, order_problem
from .parameters import PARAMETERS

if TYPE_CHECKING:
    from .custom import Custom

ORDER = ("penalties", "dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc", "temperature")
"""llama.cpp's."""

METADATA_KEYS = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.xtc_probability": "xtc_probability",
    "general.sampling.xtc_threshold": "xtc_threshold",
    "general.sampling.penalty_repeat": "repeat_penalty",
    "general.sampling.penalty_last_n": "penalty_last_n",
    "general.sampling.mirostat": "mirostat",
    "general.sampling.mirostat_tau": "mirostat_tau",
    "general.sampling.mirostat_eta": "mirostat_eta",
}


@dataclass(frozen=True)
class SamplingParams:
    """How the next token is chosen.

    `logit_bias` (token to a number that is added, -inf bans) comes first, then the steps of `samplers` in their order:
    names of steps, or functions `(ids, logits) -> (ids, logits)` over arrays of all candidates [n]. A step left out
    does not run. Meaning, order and defaults are llama.cpp's, but for `temperature`.

    `temperature` 0 or less (the default) takes the best token that `logit_bias`, penalties, dry and functions leave:
    the same prompt gives the same answer. `dynatemp_range` lets it move that far to both sides with how uncertain the
    model is. Off are `top_k` 0 or less, `top_p` and `typical_p` 1, `min_p` 0, `top_n_sigma` 0 or less,
    `xtc_probability` 0, `repeat_penalty` 1, the two other penalties 0, `dry_multiplier` 0, `mirostat` 0. Penalties and
    dry look at the last `penalty_last_n` and `dry_penalty_last_n` tokens, prompt included; -1 is all of them, and no
    repetition reaches over one of `dry_sequence_breakers`. `mirostat` 1 or 2 draws instead of the steps that leave
    candidates out. With `top_k` off the whole vocabulary may be sorted, which is slower.

    `seed` None draws one; the same seed gives the same text whatever else runs. `logprobs` 0 to 20 reports the log
    probability of each token and of so many most probable ones, as the model gave them before any of the above.

    Raises `ConfigError` that names every value out of range.
    """

    temperature: float = 0.0
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)
    samplers: tuple[str | Custom, ...] = ORDER
    seed: int | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.logprobs, bool):
            self._set("logprobs", 0 if self.logprobs else None)
        problems = dict(self._problems())
        if problems:
            raise ConfigError("; ".join(problems.values()), key=next(iter(problems)))
        for name, allowed in PARAMETERS.items():
            value = getattr(self, name)
            if value is not None:
                self._set(name, int(value) if allowed.integer else float(value))
        self._set("samplers", tuple(self.samplers))
        self._set("dry_sequence_breakers", tuple(self.dry_sequence_breakers))
        self._set("logit_bias", {int(token): float(bias) for token, bias in self.logit_bias.items()})

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _problems(self) -> Iterator[tuple[str, str]]:
        for name, allowed in PARAMETERS.items():
            if not allowed.holds(getattr(self, name)):
                yield name, f"{name} must be {allowed}, not {getattr(self, name)!r}"
        for name, problem in (
            ("logit_bias", bias_problem(self.logit_bias)),
            ("samplers", order_problem(self.samplers, ORDER)),
            ("dry_sequence_breakers", breakers_problem(self.dry_sequence_breakers)),
        ):
            if problem:
                yield name, f"{name} {problem}"

    @property
    def temperatures(self) -> tuple[float, float]:
        """The lowest and the highest temperature there can be; equal ones where it is fixed."""
        low, high = self.temperature - self.dynatemp_range, self.temperature + self.dynatemp_range
        return max(low, 0.0), max(high, 0.0)

    @property
    def greedy(self) -> bool:
        """Whether the best token is taken without drawing."""
        return self.temperatures[1] == 0

    @property
    def penalises(self) -> bool:
        """Whether any penalty changes a logit."""
        changes = (self.repeat_penalty, self.frequency_penalty, self.presence_penalty) != (1.0, 0.0, 0.0)
        return "penalties" in self.samplers and changes and self.penalty_last_n != 0

    @property
    def breaks_repetitions(self) -> bool:
        """Whether the dry step changes a logit."""
        return "dry" in self.samplers and self.dry_multiplier > 0 and self.dry_penalty_last_n != 0

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
