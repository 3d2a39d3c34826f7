"""gpt-oss: a message on channel "commentary" with a function as its recipient."""

from __future__ import annotations

import re

from ..channel_thinking import CONTROLS
from .frame import Frame, Head
from .spelling import Spelling
from .style import ToolStyle

_TO = "to=functions."
_HEAD = Head(re.compile(r"(?P<name>[\w.-]+)[^{]*?<\|message\|>\s*(?=\{)"), wrapped=False)
_MIDDLE = "<|channel|>commentary <|constrain|>json<|message|>"


def _may_be(text: str) -> bool:
    header, ended, body = text.partition("<|message|>")
    return len(header) < 256 and (not ended or not body.strip() or body.lstrip()[0] == "{")


STYLE = ToolStyle(
    "harmony",
    shown_by=("<|channel|>",),
    frame=Frame(
        (_TO,),
        heads=(_HEAD,),
        read=lambda text, tools: [],
        may_be=_may_be,
        skips=("<|start|>assistant", "<|channel|>commentary", "<|channel|>analysis", "<|end|>", "<|call|>"),
    ),
    spelling=Spelling(" " + _TO, _MIDDLE, between="<|end|><|start|>assistant"),
    spelled=CONTROLS,
)
