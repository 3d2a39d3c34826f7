"""Options that say what an answer must be."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from ..errors import FormatError
from .command import Option
from .parser import UsageError
from .text_file import read_text

SCHEMA = Option("--json-schema", str, "The answer follows the JSON schema in this file", "path", otherwise="none")
REGEX = Option("--regex", str, "The answer matches this expression", "regular expression", otherwise="none")
GRAMMAR = Option("--grammar", str, "The answer follows the GBNF grammar in this file", "path", otherwise="none")
CHOICE = Option("--choice", str, "The answer is this text or another --choice", "text", many=True)
CONSTRAINTS = (SCHEMA, REGEX, GRAMMAR, CHOICE)


def constraint(values: Namespace) -> dict[str, Any]:
    """The keyword of `generate`, if one is given. Raises `UsageError`, `ConfigError`, `FormatError`."""
    given = [option for option in CONSTRAINTS if getattr(values, option.dest)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(option.flag for option in given)} exclude each other: give one of them")
    if values.json_schema:
        return {"schema": _schema(values.json_schema)}
    if values.grammar:
        return {"grammar": read_text(values.grammar, "--grammar")}
    return {name: value for name, value in (("regex", values.regex), ("choices", values.choice)) if value}


def _schema(path: str) -> dict[str, Any]:
    try:
        schema = json.loads(read_text(path, "--json-schema"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no JSON: {error}", path=path) from None
    if not isinstance(schema, dict):
        raise FormatError("is no JSON schema: it must be an object", path=path)
    return schema
