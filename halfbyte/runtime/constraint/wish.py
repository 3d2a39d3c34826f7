"""`Constraint`: what a caller wants an answer to be, checked and as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import ConfigError
from .schema import read_schema

Kind = Literal["regex", "schema", "choices", "grammar", "lark"]
NAMES = ("regex", "schema", "choices", "grammar")
MOST_CHARACTERS = 1 << 20


class Lark(str):
    """A grammar in llguidance's dialect of Lark, where `grammar` takes GBNF from callers; it knows control tokens."""


@dataclass(frozen=True)
class Constraint:
    """`source` is the expression or grammar, or JSON. `parse` makes of an answer's text what the caller asked for."""

    kind: Kind
    source: str
    parse: Callable[[str], Any] | None = field(default=None, compare=False)
    returns: bool = field(default=False, compare=False)
    """Whether the caller gave a class and gets an object of it instead of a `Completion`."""


def read_constraint(options: Mapping[str, Any]) -> Constraint | None:
    """The one of `regex`, `schema`, `choices`, `grammar` that is given. Raises `ConfigError`, `UnsupportedError`."""
    given = [name for name in NAMES if options.get(name) is not None]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} exclude each other: give one of them", key=given[1])
    if not given:
        return None
    constraint = READERS[given[0]](options[given[0]])
    if len(constraint.source) > MOST_CHARACTERS:
        raise ConfigError(
            f"{given[0]} has {len(constraint.source)} characters, more than the {MOST_CHARACTERS} allowed", key=given[0]
        )
    return constraint


def _regex(value: Any) -> Constraint:
    return Constraint("regex", _text("regex", value))


def _grammar(value: Any) -> Constraint:
    return Constraint("lark" if isinstance(value, Lark) else "grammar", str(_text("grammar", value)))


def _choices(value: Any) -> Constraint:
    texts = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not (texts and len(value) > 0 and all(isinstance(text, str) and text for text in value)):
        message = f"choices must be a list of strings, none of them empty, not {repr(value)[:80]}"
        raise ConfigError(message, key="choices")
    return Constraint("choices", json.dumps(list(dict.fromkeys(value))))


def _schema(value: Any) -> Constraint:
    schema = read_schema(value)
    return Constraint("schema", schema.source, schema.parse, schema.returns)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} must be a string that is not empty, not {repr(value)[:80]}", key=name)
    return value


READERS: dict[str, Callable[[Any], Constraint]] = {
    "regex": _regex,
    "schema": _schema,
    "choices": _choices,
    "grammar": _grammar,
}
