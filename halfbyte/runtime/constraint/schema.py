"""`read_schema`: a JSON schema from a mapping, or from a class that Pydantic understands."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...errors import ConfigError, RequestError


class Schema(NamedTuple):
    """The schema as JSON, how its answers become objects, and whether the caller `returns` these alone."""

    source: str
    parse: Callable[[str], Any]
    returns: bool


def read_schema(value: Any) -> Schema:
    """Raises `ConfigError` for what is no schema."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes, int, float, list, tuple)):
        raise ConfigError(
            f"schema must be a mapping (a JSON schema) or a class such as a Pydantic model, not {repr(value)[:80]}",
            key="schema",
        )
    if isinstance(value, Mapping):
        return Schema(_dump(value), read_json, returns=False)
    return _of_class(value)


def read_json(text: str) -> Any:
    """What JSON text says."""
    return json.loads(text)


def _dump(schema: Mapping[str, Any]) -> str:
    try:
        return json.dumps(_plain(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"schema is not plain JSON data: {error}", key="schema") from None


def _plain(value: Any) -> Any:
    """Mappings as dicts, so that any kind of them will do; raises `TypeError` for a key that is no text."""
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"the key {wrong[0]!r} is not a string")
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _closed(schema: Any) -> Any:
    """With no other keys than those a class names, where it does not say that it takes them."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    # A class may have a field of that name: then what stands there is a schema.
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _of_class(value: Any) -> Schema:
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise ConfigError(
            f"schema={value!r} is a class, and pydantic, which reads it, is not installed: pip install pydantic, or "
            "give the JSON schema as a mapping",
            key="schema",
        ) from None
    try:
        adapter = value if isinstance(value, pydantic.TypeAdapter) else pydantic.TypeAdapter(value)
        source = json.dumps(_closed(adapter.json_schema()))
    except Exception as error:  # pydantic runs the caller's code
        message = f"schema={value!r} has no JSON schema: {type(error).__name__}: {error}"
        raise ConfigError(message, key="schema") from error

    def parse(text: str) -> Any:
        try:
            return adapter.validate_json(text)
        except Exception as error:
            name = getattr(value, "__name__", value)
            raise RequestError(f"the answer follows the JSON schema of {name!r}, which refuses it: {error}") from error

    return Schema(source, parse, returns=True)
