"""`Options`: what a caller can say about one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, TypedDict

from ..errors import ConfigError, reject_unknown
from .adapters import AdapterChoice, Adapters, AdapterUse
from .constraint.compiler import Compiler
from .constraint.grammar import Grammar
from .constraint.wish import NAMES as CONSTRAINTS
from .constraint.wish import Constraint, read_constraint
from .engine import Ask
from .sampling.custom import Custom
from .sampling.parameters import PARAMETERS, as_float
from .sampling.params import SamplingParams


class AnswerOptions(TypedDict, total=False):
    """Keywords of `generate` and `stream` but for `schema`; None stands for the default.

    `max_tokens`: at least 1, by default as many as the context holds. `stop`: the answer ends before the first of these
    strings. `priority`: lower is served sooner, 0 by default; waiting makes up for it. `timeout`: seconds after which
    the request ends with `DeadlineExceededError`. `adapters`: which of the model's, by name or path, or names with
    scales; by default all with the scales of the load. `spelled`: texts of control tokens that the answer shows, which
    it does not by default. `regex`, `choices`, `grammar` (GBNF): what the answer must be. The others
    are those of `SamplingParams`; their defaults are the model's (`general.sampling.*` of the file), where it has none
    the library's.
    """

    max_tokens: int | None
    stop: str | Sequence[str] | None
    priority: int | None
    timeout: float | None
    adapters: AdapterChoice | None
    spelled: Sequence[str] | None
    regex: str | None
    choices: Sequence[str] | None
    grammar: str | None
    temperature: float | None
    dynatemp_range: float | None
    dynatemp_exponent: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    top_n_sigma: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    repeat_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    penalty_last_n: int | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_penalty_last_n: int | None
    dry_sequence_breakers: Sequence[str] | None
    mirostat: int | None
    mirostat_tau: float | None
    mirostat_eta: float | None
    logit_bias: Mapping[int, float] | None
    samplers: Sequence[str | Custom] | None
    seed: int | None
    logprobs: int | None


class Options(AnswerOptions, total=False):
    """All keywords: the answer follows the JSON schema `schema`. A class that Pydantic knows does as well."""

    schema: Mapping[str, Any] | None


class ChatAnswerOptions(AnswerOptions, total=False):
    """Keywords of `chat` and `stream_chat` but for `schema`; `chat_template_kwargs` go to the model's template."""

    chat_template_kwargs: Mapping[str, Any] | None


class ChatOptions(Options, total=False):
    """All keywords of `chat` and `stream_chat`."""

    chat_template_kwargs: Mapping[str, Any] | None


SAMPLING_NAMES = tuple(field.name for field in fields(SamplingParams))
NAMES = (*SAMPLING_NAMES, "max_tokens", "stop", "priority", "timeout", "adapters", "spelled", *CONSTRAINTS)
CHAT_NAMES = (*NAMES, "chat_template_kwargs")


@dataclass(frozen=True)
class Plan:
    """Options of one answer, checked and with defaults filled in."""

    params: SamplingParams
    max_tokens: int | None
    stop: tuple[str, ...]
    priority: int
    timeout: float | None
    adapters: AdapterUse
    spelled: tuple[str, ...]
    constraint: Constraint | None = None
    grammar: Grammar | None = None

    def sample(self, number: int) -> Plan:
        """The plan of the `number`-th of several answers to one prompt: a seed moves on by as much."""
        seed = self.params.seed
        return self if seed is None else replace(self, params=replace(self.params, seed=(seed + number) % 2**64))

    def ask(self, notify: Callable[[], None] | None = None) -> Ask:
        """The engine's part of it."""
        return Ask(self.params, self.max_tokens, self.priority, self.timeout, notify, self.adapters, self.grammar)


def resolve(
    options: Mapping[str, Any], defaults: SamplingParams, adapters: Adapters, compiler: Compiler | None = None
) -> Plan:
    """Options over a model's defaults.

    Raises `ConfigError` for unknown names and for values out of range, `RequestError` for adapters it does not have,
    `UnsupportedError` for a schema that asks for more than can be kept.
    """
    reject_unknown(options, NAMES, "keyword")
    constraint = read_constraint(options)
    return Plan(
        params=defaults.override({name: value for name, value in options.items() if name in SAMPLING_NAMES}),
        max_tokens=_whole(options, "max_tokens", 1, None),
        stop=_texts("stop", options.get("stop")),
        priority=_whole(options, "priority", -(2**31), 0) or 0,
        timeout=_seconds(options.get("timeout")),
        adapters=adapters.choose(options.get("adapters")),
        spelled=_texts("spelled", options.get("spelled")),
        constraint=constraint,
        grammar=None if constraint is None or compiler is None else compiler.compile(constraint),
    )


def _whole(options: Mapping[str, Any], name: str, low: int, default: int | None) -> int | None:
    value: Any = options.get(name)
    if value is None:
        return default
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and low <= value < 2**63):
        least = f" of at least {low}" if low > 0 else ""
        raise ConfigError(f"{name} must be an integer{least} or None, not {value!r}", key=name)
    return int(value)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and as_float(value) > 0):
        raise ConfigError(f"timeout must be a number of seconds above 0 or None, not {value!r}", key="timeout")
    return float(value)


def check_logprobs(count: object) -> None:
    """Raise `ConfigError` unless it is a number of alternatives that can be kept."""
    allowed = PARAMETERS["logprobs"]
    if count is None or not allowed.holds(count):
        raise ConfigError(f"logprobs must be an integer{allowed.range}, not {count!r}", key="logprobs")


def check_template_kwargs(given: object) -> Mapping[str, Any]:
    """Variables for a chat template. Raises `ConfigError` for what is no mapping or would replace the messages."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(name, str) and name != "messages" for name in given):
        return given
    raise ConfigError(
        f"chat_template_kwargs must map names of template variables other than 'messages' to values, not {given!r}",
        key="chat_template_kwargs",
    )


def _texts(name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    strings = (value,) if isinstance(value, str) else value
    if not isinstance(strings, Sequence) or not all(isinstance(text, str) and text for text in strings):
        raise ConfigError(f"{name} must be a string or a list of strings, none of them empty, not {value!r}", key=name)
    return tuple(strings)
