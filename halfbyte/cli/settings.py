"""Sampling parameters as `NAME=VALUE`, for `--set` and for `/set` in a chat."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError, reject_unknown
from ..runtime.sampling.parameters import PARAMETERS, Parameter
from ..runtime.sampling.params import ORDER, SamplingParams


def setting(assignment: str, *others: str) -> tuple[str, Any]:
    """The name and the value of `name=value`; `others` are whole numbers of the caller's.

    Raises `ConfigError` for a wrong one.
    """
    name, equals, text = (part.strip() for part in assignment.partition("="))
    name = name.replace("-", "_")
    known = [*others, *PARAMETERS, *TEXTS]
    if not equals or not text:
        raise ConfigError(f"write NAME=VALUE, for example temperature=0.7; names: {', '.join(known)}")
    reject_unknown([name], known, "setting")
    value = TEXTS[name][0](text) if name in TEXTS else _number(name, text)
    if name not in others:
        SamplingParams().override({name: value})
    return name, value


def rows() -> list[tuple[str, str]]:
    """Name and explanation of every parameter, with unit, range and default."""
    defaults = SamplingParams()
    numbers = [(name, _help(PARAMETERS[name], getattr(defaults, name))) for name in PARAMETERS]
    return numbers + [(name, f"{what} (default {default})") for name, (_, what, default) in TEXTS.items()]


def _help(parameter: Parameter, default: float | None) -> str:
    shown = "none" if default is None else f"{default:g}"
    return f"{parameter.what} ({parameter.unit}{',' * bool(parameter.range)}{parameter.range}; default {shown})"


def _number(name: str, text: str) -> float:
    whole = name not in PARAMETERS or PARAMETERS[name].integer
    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a {'whole ' if whole else ''}number", key=name) from None


def _order(text: str) -> list[str]:
    return [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]


def _breakers(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        message = f'{text!r} is no JSON list of texts, for example ["\\n", "."]'
        raise ConfigError(message, key="dry_sequence_breakers") from None


def _bias(text: str) -> dict[int, float]:
    try:
        pairs = (pair.split(":") for pair in text.split(","))
        return {int(token): float(bias) for token, bias in pairs}
    except ValueError:
        raise ConfigError(f"{text!r} is not TOKEN:NUMBER,TOKEN:NUMBER...", key="logit_bias") from None


TEXTS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "samplers": (_order, "which steps run and in which order, commas between", ", ".join(ORDER)),
    "dry_sequence_breakers": (_breakers, "texts no repetition reaches over, a JSON list", r'["\n", ":", "\"", "*"]'),
    "logit_bias": (_bias, "numbers added to logits, TOKEN:NUMBER, commas between; -inf bans", "none"),
}
