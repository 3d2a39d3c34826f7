"""Granite 3 and Phi-4: a list of JSON objects behind `<|tool_call|>`."""

from __future__ import annotations

from .frame import Frame
from .spelling import Spelling
from .style import ToolStyle

_OPENS, _CLOSES = "<|tool_call|>", "<|/tool_call|>"


def _spelling(closes: str) -> Spelling:
    return Spelling('{"name": "', '", "arguments": ', "}", first=_OPENS + "[", between=", ", last="]" + closes)


GRANITE = ToolStyle(
    "granite",
    shown_by=(_OPENS, "<|start_of_role|>available_tools"),
    frame=Frame((_OPENS, "<tool_call>")),
    spelling=_spelling(""),
    spelled=(_OPENS, "<tool_call>"),
)
PHI4 = ToolStyle(
    "phi4", shown_by=(_CLOSES,), frame=Frame((_OPENS,), _CLOSES), spelling=_spelling(_CLOSES), spelled=(_OPENS, _CLOSES)
)
