"""Llama 3: JSON with `name` and `parameters`, alone or behind `<|python_tag|>`, and there also `TOOL.call(...)`."""

from __future__ import annotations

import re

from .deltas import Call
from .frame import Frame, Tools, may_be_json
from .instructions import json_instructions
from .json_calls import read_json_calls
from .python_calls import read_python_calls
from .spelling import Spelling
from .style import ToolStyle

_TAG = "<|python_tag|>"
_PYTHON = re.compile(r"\s*[A-Za-z_][\w.-]*(\(.*)?", re.DOTALL)


def _read(text: str, tools: Tools) -> list[Call]:
    return read_json_calls(text) if text[:1] in ("{", "[") else read_python_calls(text)


def _may_be(text: str) -> bool:
    return may_be_json(text) or _PYTHON.fullmatch(text) is not None


STYLE = ToolStyle(
    "llama3",
    shown_by=(_TAG, "<|start_header_id|>"),
    frame=Frame((_TAG,), bare=True, read=_read, may_be=_may_be),
    spelling=Spelling('{"name": "', '", "parameters": ', "}", between="; "),
    spelled=(_TAG,),
    instructions=json_instructions,
)
