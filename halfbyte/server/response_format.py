"""`format_options`: the form an answer must have."""

from __future__ import annotations

from typing import Any

from .errors import invalid
from .fields import Fields

KINDS = ("text", "json_object", "json_schema")
ANY_OBJECT = {"type": "object"}


def format_options(fields: Fields) -> dict[str, Any]:
    """Keywords of `generate` for `response_format`, and for `regex`, `choices`, `grammar`, which are not OpenAI's.

    Raises `ApiError`; what a schema may say is the library's to judge.
    """
    options = {name: fields.take(name) for name in ("regex", "choices", "grammar")}
    given = fields.inner("response_format")
    if given is not None:
        options["schema"] = _schema(given)
    options = {name: value for name, value in options.items() if value is not None}
    if len(options) > 1:
        raise invalid(f"an answer has one form: {' or '.join(options)}, not both", next(iter(options)))
    return options


def _schema(given: Fields) -> dict[str, Any] | None:
    kind = given.choice("type", KINDS, "")
    schema = given.inner("json_schema")
    given.finish()
    if not kind:
        raise invalid(f"response_format.type must be one of {', '.join(KINDS)}", "response_format.type")
    if kind != "json_schema":
        return ANY_OBJECT if kind == "json_object" else None
    if schema is None:
        raise invalid("response_format.json_schema is missing", "response_format.json_schema")
    if schema.text("name") is None:
        raise invalid("response_format.json_schema.name is missing", "response_format.json_schema.name")
    schema.ignore("description", "strict")  # an answer always follows the schema
    wanted = schema.take("schema")
    schema.finish()
    if not isinstance(wanted, dict):
        raise schema.wrong("schema", "an object", wanted)
    return wanted
