"""`Speech`: how one request's answer is to be written and read, by the model's own template."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import ConfigError, HalfbyteError
from ..runtime.async_stream import AsyncStream
from ..runtime.constraint.compiler import COMPACT
from ..runtime.constraint.keywords import check_keywords
from ..runtime.constraint.wish import Lark
from ..runtime.llm import LLM
from ..text.reasoning import Reasoning
from ..text.tool_styles import ToolStyle
from ..text.tool_styles.grammar import call_grammar, form_grammar, whole_grammar
from .errors import ApiError, api_error, invalid
from .fields import Fields
from .tool_calls import AnswerParts, new_call_id
from .tool_choice import ToolWish

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
FORMS = ("schema", "regex", "choices", "grammar")
ANY_OBJECT = {"type": "object"}
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

    async def start(self, messages: list[Any], n: int, options: dict[str, Any]) -> list[AsyncStream]:
        """`n` answers that begin. Raises as `LLM.astreams_chat`, and `ApiError`."""
        followed = await self.constrain(messages, options)
        try:
            return await self.llm.astreams_chat(messages, n, **followed)
        except ConfigError as error:
            if followed is options or error.key != "grammar":
                raise
            raise invalid(f"the schemas of the tools or of the answer make no grammar: {error}", "tools") from None

    def parts(self, stream: AsyncStream) -> AnswerParts:
        """What turns the text of an answer into deltas."""
        thinking = calls = None
        if self.reasoning is not None:
            tail = self.llm.detokenize(stream.prompt_ids[-TAIL:], special=True)
            thinking = self.reasoning.splitter(tail)
        if self.style is not None:
            calls = self.style.parser(self.wish.schemas)
        return AnswerParts(thinking, calls, partial(new_call_id, self.style.id_length if self.style else None))

    async def constrain(self, messages: list[Any], options: dict[str, Any]) -> dict[str, Any]:
        """`options` with a grammar where tools want one, or where a form of the answer goes with tools or thinking.

        Raises `ApiError`, and what rendering `messages` raises.
        """
        form = next((name for name in FORMS if options.get(name) is not None), None)
        calls = self.style is not None and (self.wish.bound or form is not None)
        if form is not None and self.wish.required:
            raise invalid("an answer that must call a tool has no other form: leave out one of the two", form)
        if not calls and (form is None or self.reasoning is None):
            return options
        reasoning, opened = await self._before(messages)
        if not calls and not opened:
            return options
        rules = {"calls": self._calls(form is not None)} if calls else {}
        if form is not None:
            rules["form"] = self._form(form, options[form])
        grammar = whole_grammar(rules, reasoning, opened, self._control)
        kept = {name: value for name, value in options.items() if name not in FORMS}
        return kept | {"grammar": Lark(grammar)}

    def _calls(self, beside_form: bool) -> str:
        wish, style = self.wish, self.style
        assert style is not None
        schemas = {name: _usable(name, schema, name in wish.strict, style) for name, schema in wish.schemas.items()}
        required = wish.required or beside_form
        return call_grammar(style, schemas, required=required, parallel=wish.parallel, control=self._control)

    def _form(self, name: str, value: Any) -> str:
        if name == "schema":
            check_keywords(value)
            value = _compact(value)
        return form_grammar(name, value)

    async def _before(self, messages: list[Any]) -> tuple[Reasoning | None, bool]:
        """The thinking that may come before the answer, and whether the prompt ends within it."""
        if self.reasoning is None:
            return None, False
        variables = self.options.get("chat_template_kwargs", {})
        prompt = await asyncio.to_thread(self.llm.template.render, messages, **variables)
        return None if self.reasoning.closed(prompt) else self.reasoning, self.reasoning.opened(prompt)

    def _control(self, text: str) -> int | None:
        token = self.llm.tokenizer.vocabulary.ids.get(text)
        return token if token is not None and not self.llm.tokenizer.token_bytes(token) else None


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


def _usable(name: str, schema: dict[str, Any], strict: bool, style: ToolStyle) -> dict[str, Any]:
    """A schema that a grammar can follow: where nothing strict was asked for any object will do.

    Raises `ApiError` where that is not enough.
    """
    param = f"tools.{name}.parameters"
    if strict and style.spelling.form != "json":
        raise ApiError(
            400, f"the tool {name!r} wants strict=true, and this model writes arguments otherwise than as JSON",
            param=param, code="unsupported_value",
        )  # fmt: skip
    try:
        check_keywords(schema)
    except HalfbyteError as error:
        if not strict:
            return ANY_OBJECT
        known = api_error(error)
        raise ApiError(known.status, f"the tool {name!r}: {error}", param=param, code=known.code) from None
    return _compact(schema if "$ref" in schema else {"type": "object", **schema})


def _compact(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-guidance": COMPACT}
