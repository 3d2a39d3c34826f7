"""`Speech`: how one request's answer is to be written and read, by the model's own template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from ..runtime.async_stream import AsyncStream
from ..runtime.llm import LLM
from ..text.reasoning import Reasoning
from ..text.tool_styles import ToolStyle
from .errors import invalid
from .fields import Fields
from .tool_calls import AnswerParts, new_call_id
from .tool_choice import ToolWish

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
TAIL = 32
"""Tokens of a prompt among which a mark that opens thinking would be the last."""


@dataclass(frozen=True)
class Speech:
    """`options` are keywords of `LLM.chat` that it takes."""

    llm: LLM
    wish: ToolWish
    reasoning: Reasoning | None
    style: ToolStyle | None
    options: dict[str, Any]

    def parts(self, stream: AsyncStream) -> AnswerParts:
        """What turns the text of an answer into deltas."""
        thinking = calls = None
        if self.reasoning is not None:
            tail = self.llm.detokenize(stream.prompt_ids[-TAIL:], special=True)
            thinking = self.reasoning.splitter(tail)
        if self.style is not None:
            calls = self.style.parser(self.wish.schemas)
        return AnswerParts(thinking, calls, partial(new_call_id, self.style.id_length if self.style else None))


def read_speech(llm: LLM, wish: ToolWish, fields: Fields, effort: str | None = None) -> Speech:
    """From the tools of a request, its `chat_template_kwargs` and an effort of thinking. Raises `ApiError`."""
    template = llm.template
    reasoning, style = template.reasoning, template.tools[0] if wish else None
    variables = dict(fields.mapping("chat_template_kwargs") or {})
    if effort == "none" and reasoning is not None:
        if not reasoning.off:
            raise invalid("this model cannot leave out thinking", "reasoning_effort", "unsupported_value")
        variables = {**reasoning.off, **variables}
    elif effort is not None and "reasoning_effort" in template.variables:
        variables.setdefault("reasoning_effort", effort)
    if wish:
        variables["tools"] = list(wish.listed)
    spelled = (*(reasoning.spelled if reasoning else ()), *(style.spelled if style else ()))
    options: dict[str, Any] = {"chat_template_kwargs": variables} if variables else {}
    if spelled:
        options["spelled"] = spelled
    return Speech(llm, wish, reasoning, style, options)
