"""`Options`: what a caller can say about one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, TypedDict

from ..errors import ConfigError, reject_unknown
from .sampling.params import SamplingParams


class Options(TypedDict, total=False):
    """Keywords of `generate` and `stream`; None stands for the default.

    `max_tokens`: at least 1, by default as many as the context holds. `stop`: the answer ends before the first of these
    strings. The others are those of `SamplingParams`; their defaults are the model's (`general.sampling.*` of the
    file), where it has none the library's.
    """

    max_tokens: int | None
    stop: str | Sequence[str] | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repeat_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    penalty_last_n: int | None
    seed: int | None


class ChatOptions(Options, total=False):
    """Keywords of `chat` and `stream_chat`; `chat_template_kwargs` are handed to the model's template."""

    chat_template_kwargs: Mapping[str, Any] | None


SAMPLING_NAMES = tuple(field.name for field in fields(SamplingParams))
NAMES = (*SAMPLING_NAMES, "max_tokens", "stop")
CHAT_NAMES = (*NAMES, "chat_template_kwargs")


@dataclass(frozen=True)
class Plan:
    """Options of one answer, checked and with defaults filled in."""

    params: SamplingParams
    max_tokens: int | None
    stop: tuple[str, ...]


def resolve(options: Mapping[str, Any], defaults: SamplingParams) -> Plan:
    """Options over a model's defaults. Raises `ConfigError` for unknown names and for values out of range."""
    reject_unknown(options, NAMES, "keyword")
    params = defaults.override({name: value for name, value in options.items() if name in SAMPLING_NAMES})
    max_tokens = options.get("max_tokens")
    if max_tokens is not None and (
        isinstance(max_tokens, bool) or not isinstance(max_tokens, Integral) or max_tokens < 1
    ):
        raise ConfigError(f"max_tokens must be an integer of at least 1 or None, not {max_tokens!r}", key="max_tokens")
    return Plan(params, None if max_tokens is None else int(max_tokens), _stop_strings(options.get("stop")))


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


def _stop_strings(stop: object) -> tuple[str, ...]:
    if stop is None:
        return ()
    strings = (stop,) if isinstance(stop, str) else stop
    if not isinstance(strings, Sequence) or not all(isinstance(text, str) and text for text in strings):
        raise ConfigError(f"stop must be a string or a list of strings, none of them empty, not {stop!r}", key="stop")
    return tuple(strings)
