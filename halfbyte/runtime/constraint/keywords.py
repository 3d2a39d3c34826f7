"""`check_keywords`: every keyword of a JSON schema is kept, or refused by name and place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import ConfigError, UnsupportedError, nearest

ONE = frozenset({"items", "additionalItems", "additionalProperties"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
LIMITS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("pattern", "format", "minItems", "maxItems", "minProperties", "maxProperties", "required"),
    }
)
KEPT = ONE | LISTS | MAPS | LIMITS | {"type", "enum", "const", "$ref", "$id", "$anchor", "$schema"}
REMARKS = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("contentEncoding", "contentMediaType", "contentSchema", "$vocabulary", "discriminator", "strict"),
    }
)
"""These say nothing about which answers there are; `discriminator` says how to tell the branches of a `oneOf` apart."""
REFUSED = frozenset(
    {
        *("not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames"),
        *("dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems", "unevaluatedProperties"),
        *("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "nullable", "x-guidance"),
    }
)
"""Keywords that we know of: their names need no correction."""
FORMATS = (
    *("date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"),
    "unknown",
)
DEEPEST = 128


def check_keywords(schema: Any) -> None:
    """Raises `UnsupportedError` for the first keyword or format that would be dropped, `ConfigError` for no schema."""
    for where, part in _parts(schema, ""):
        for keyword in part:
            if keyword not in KEPT and keyword not in REMARKS:
                hint = "" if keyword in REFUSED else nearest(keyword, KEPT)
                raise UnsupportedError(f"schema: the keyword {keyword!r} at {where or '/'} is not supported{hint}")
        if isinstance(part.get("exclusiveMinimum"), bool) or isinstance(part.get("exclusiveMaximum"), bool):
            raise UnsupportedError(f"schema: exclusive limits at {where or '/'} must be numbers, as since draft 6")
        if "format" in part and part["format"] not in FORMATS:
            message = f"schema: the format {part['format']!r} at {where or '/'} is not supported"
            raise UnsupportedError(message, known=FORMATS[:-1])


def _parts(schema: Any, where: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, and where it stands."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise ConfigError(f"schema: {where or '/'} must be an object, not {repr(schema)[:60]}", key="schema")
    if depth > DEEPEST:
        raise ConfigError(f"schema: {where[:60]}... is nested more than {DEEPEST} deep", key="schema")
    yield where, schema
    for keyword, value in schema.items():
        if keyword in MAPS:
            if not isinstance(value, dict):
                raise ConfigError(f"schema: {where}/{keyword} must be an object, not {repr(value)[:60]}", key="schema")
            inner = list(value.items())
        elif keyword in LISTS and isinstance(value, list):
            inner = [(str(place), part) for place, part in enumerate(value)]
        elif keyword in ONE:
            yield from _parts(value, f"{where}/{keyword}", depth + 1)
            continue
        else:
            continue
        for name, part in inner:
            yield from _parts(part, f"{where}/{keyword}/{name}", depth + 1)
