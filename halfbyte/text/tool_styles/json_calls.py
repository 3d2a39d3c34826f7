"""`read_json_calls`: calls as JSON objects, in any order of keys and with the usual liberties."""

from __future__ import annotations

import json
from typing import Any

from .deltas import Call

NAME_KEYS = ("name", "function", "tool_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args")
CALL_KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, "type", "id"})
"""What a call may begin with."""


def read_json_calls(text: str, tools: object = None) -> list[Call]:
    """The calls of an object or of a list of objects; none where the text is anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    calls = [_call(one) for one in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call is not None] if all(calls) else []


def _call(value: Any) -> Call | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        return _call(inner)
    name = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments: Any = next((value[key] for key in ARGUMENT_KEYS if key in value), {})
    if isinstance(arguments, str):
        arguments = _object(arguments)
    arguments = {} if arguments is None else arguments
    if not name or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
