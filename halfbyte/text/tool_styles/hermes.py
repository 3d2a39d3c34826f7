"""Hermes, Qwen and other ChatML models: a JSON object between `<tool_call>` and `</tool_call>`.

Small models forget the tags: an answer that is a call but for them counts as one.
"""

from __future__ import annotations

from .frame import Frame
from .instructions import tagged_instructions
from .spelling import Spelling
from .style import ToolStyle

_OPENS, _CLOSES = "<tool_call>", "</tool_call>"
STYLE = ToolStyle(
    "hermes",
    shown_by=(_OPENS,),
    frame=Frame((_OPENS,), _CLOSES, bare=True),
    spelling=Spelling(_OPENS + '\n{"name": "', '", "arguments": ', "}\n" + _CLOSES, between="\n"),
    spelled=(_OPENS, _CLOSES),
    instructions=tagged_instructions,
)
