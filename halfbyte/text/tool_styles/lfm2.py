"""LFM2: a list of calls in Python's form between marks."""

from __future__ import annotations

import re

from .frame import Frame
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
        heads=(),
        read=lambda text, tools: read_python_calls(text),
        may_be=lambda text: re.match(r"\s*(\[|$)", text) is not None,
    ),
    spelling=Spelling("", "(", ")", first=_OPENS + "[", between=", ", last="]" + _CLOSES, form="python"),
    spelled=(_OPENS, _CLOSES),
)
