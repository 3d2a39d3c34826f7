"""Gemma: `call:NAME{KEY:VALUE,...}` between marks, or JSON where a template knows nothing of tools."""

from __future__ import annotations

import json
import re
from functools import partial

from .deltas import Call
from .frame import Frame, Tools
from .instructions import json_instructions
from .quoted_values import read_object
from .spelling import Spelling
from .style import ToolStyle

_CALL = re.compile(r"call:\s*([\w.-]+)\s*(?=\{)")


def _read(quote: str, text: str, tools: Tools) -> list[Call]:
    match = _CALL.match(text)
    try:
        arguments = read_object(text[match.end() :], quote) if match else None
    except (ValueError, RecursionError):
        return []
    return [Call(match[1], json.dumps(arguments, ensure_ascii=False))] if match else []


def _may_be(text: str) -> bool:
    return "call:".startswith(text.lstrip()[:5])


def _frame(opens: str, closes: str, quote: str) -> Frame:
    return Frame((opens,), closes, heads=(), read=partial(_read, quote), may_be=_may_be)


FUNCTION = ToolStyle(
    "function-gemma",
    shown_by=("<start_function_call>",),
    frame=_frame("<start_function_call>", "<end_function_call>", "<escape>"),
    spelling=Spelling("<start_function_call>call:", "", "<end_function_call>", form="quoted", quote="<escape>"),
    spelled=("<start_function_call>", "<end_function_call>", "<escape>"),
)
GEMMA4 = ToolStyle(
    "gemma4",
    shown_by=("<|tool_call>",),
    frame=_frame("<|tool_call>", "<tool_call|>", '<|"|>'),
    spelling=Spelling("<|tool_call>call:", "", "<tool_call|>", form="quoted", quote='<|"|>'),
    spelled=("<|tool_call>", "<tool_call|>", '<|"|>'),
)
STYLE = ToolStyle(
    "gemma",
    shown_by=("<start_of_turn>",),
    frame=Frame(("```json", "```tool_code", "```tool_call"), "```", bare=True),
    spelling=Spelling('{"name": "', '", "parameters": ', "}", between="\n"),
    instructions=json_instructions,
)
