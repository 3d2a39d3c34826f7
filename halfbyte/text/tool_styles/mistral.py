"""Mistral: `[TOOL_CALLS]` and a list of JSON objects, or, since its tokenizer 11, `[TOOL_CALLS]NAME[ARGS]ARGUMENTS`."""

from __future__ import annotations

import re

from .frame import JSON_HEAD, Frame, Head, may_be_json
from .spelling import Spelling
from .style import ToolStyle

_CALLS, _ID, _ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAMED = Head(
    re.compile(r"\s*(?P<name>[A-Za-z_][\w.:-]*)(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?\s*(?=\{)"),
    wrapped=False,
)


def _may_be(text: str) -> bool:
    return may_be_json(text) or re.fullmatch(r"\s*[A-Za-z_][\w.:-]*(\[[\w\[\]]*)?\s*(\{.*)?", text) is not None


_FRAME = Frame((_CALLS,), heads=(JSON_HEAD, _NAMED), may_be=_may_be)

LISTED = ToolStyle(
    "mistral",
    shown_by=(_CALLS,),
    frame=_FRAME,
    spelling=Spelling('{"name": "', '", "arguments": ', "}", first=_CALLS + "[", between=", ", last="]"),
    spelled=(_CALLS, _ID, _ARGS),
    id_length=9,
)
NAMED = ToolStyle(
    "mistral-named",
    shown_by=(_ARGS,),
    frame=_FRAME,
    spelling=Spelling(_CALLS, _ARGS),
    spelled=(_CALLS, _ID, _ARGS),
    id_length=9,
)
