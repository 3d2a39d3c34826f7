"""Qwen3-Coder: `<function=NAME>` with a `<parameter=KEY>` for each argument, within `<tool_call>`."""

from __future__ import annotations

import json
import re
from typing import Any

from .deltas import Call
from .frame import Frame, Tools
from .spelling import Spelling
from .style import ToolStyle

_OPENS, _CLOSES = "<tool_call>", "</tool_call>"
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|$)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|$)", re.DOTALL)


def _read(text: str, tools: Tools) -> list[Call]:
    calls = []
    for name, body in _FUNCTION.findall(text):
        properties = tools.get(name, {}).get("properties")
        kinds = properties if isinstance(properties, dict) else {}
        arguments = {key: _value(value, kinds.get(key)) for key, value in _PARAMETER.findall(body)}
        calls.append(Call(name, json.dumps(arguments, ensure_ascii=False)))
    return calls


def _value(text: str, schema: Any) -> Any:
    """Values are written without quotes: only the schema tells a text from a number."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


STYLE = ToolStyle(
    "qwen-coder",
    shown_by=("<function=",),
    frame=Frame(
        (_OPENS,), _CLOSES, heads=(), read=_read, may_be=lambda text: "<function=".startswith(text.lstrip()[:10])
    ),
    spelling=Spelling(_OPENS + "\n<function=", ">\n", "</function>\n" + _CLOSES, between="\n", form="tags"),
    spelled=(_OPENS, _CLOSES),
)
