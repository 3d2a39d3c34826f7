"""LFM2: a list of calls between marks, in Python's form or as JSON."""

from __future__ import annotations

import re

from .frame import Frame
from .json_calls import read_json_calls
from .python_calls import read_python_calls
from .spelling import Spelling
from .style import ToolStyle

_OPENS, _CLOSES = "<|tool_call_start|>", "<|tool_call_end|>"

STYLE = ToolStyle(
    "lfm2",
    shown_by=(_OPENS, "<|tool_list_start|>"),
    frame=Frame(
        (_OPENS,),
        _CLOSES,
        read=lambda text, tools: read_json_calls(text) or read_python_calls(text),
        may_be=lambda text: re.match(r"\s*(\[|$)", text) is not None,
    ),
    spelling=Spelling("", "(", ")", first=_OPENS + "[", between=", ", last="]" + _CLOSES, form="python"),
    spelled=(_OPENS, _CLOSES),
)
