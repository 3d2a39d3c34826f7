"""`ChatTemplate`: messages to the text a model was trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import FormatError, RequestError
from .fallback_templates import FALLBACKS, choose_fallback
from .literal_marks import LiteralMarks, unmark
from .messages import check_messages, plain_data
from .reasoning import Reasoning, find_reasoning
from .rendered import Rendered
from .tokenizer import Tokenizer
from .tool_styles import ToolStyle, find_tool_style
from .tool_styles.telling import involves_tools, one_call_each, tell, tell_in_words, with_text_arguments

if TYPE_CHECKING:
    from .template_sandbox import CompiledTemplate

KEY = "tokenizer.chat_template"
_TOOLS = "tool_use"
_ONE_CALL = "only supports single tool-calls"
"""What templates of Llama 3 complain of."""


class ChatTemplate:
    """A template's source, and the texts of its vocabulary that act as control tokens.

    `name` says where the source comes from: "file", "file:NAME" or the name of a fallback.
    """

    def __init__(
        self, source: str, *, name: str, bos_token: str = "", eos_token: str = "", control: Iterable[str] = ()
    ) -> None:
        self.source = source
        self.name = name
        self.bos_token = bos_token
        self.eos_token = eos_token
        self._control = list(control)
        self._with_tools: ChatTemplate | None = None

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], tokenizer: Tokenizer) -> ChatTemplate:
        """The file's own template, with its variant for tools if there is one, or a fallback by architecture.

        Raises `FormatError` where the template is not text.
        """
        vocabulary = tokenizer.vocabulary
        facts: dict[str, Any] = {
            "bos_token": "" if tokenizer.bos_id is None else vocabulary.tokens[tokenizer.bos_id],
            "eos_token": "" if tokenizer.eos_id is None else vocabulary.tokens[tokenizer.eos_id],
            "control": vocabulary.control_texts,
        }
        source = _text(metadata, KEY) or _text(metadata, f"{KEY}.default")
        with_tools = _text(metadata, f"{KEY}.{_TOOLS}")
        if source is None and with_tools is None:
            name = choose_fallback(str(metadata.get("general.architecture", "")), vocabulary.ids)
            return cls(FALLBACKS[name], name=name, **facts)
        template = cls(source or with_tools or "", name="file", **facts)
        if with_tools is not None:
            template._with_tools = cls(with_tools, name=f"file:{_TOOLS}", **facts)
        return template

    def render(
        self, messages: Sequence[Mapping[str, Any]], /, add_generation_prompt: bool = True, **kwargs: Any
    ) -> Rendered:
        """The chat as text; hand it to `encode_chat` as it is.

        Further keywords become variables of the template; `tools` are put into the messages where it knows no such
        variable. Calls and results may be in OpenAI's form. Raises `RequestError` for messages that are malformed or
        that the template refuses, `FormatError` for a template that is broken or hostile, `UnsupportedError` for one
        that wants what we do not have.
        """
        if self._with_tools is not None and kwargs.get("tools"):
            return self._with_tools.render(messages, add_generation_prompt, **kwargs)
        given = {name: plain_data(value, name) for name, value in kwargs.items()}
        checked = [self._known(message) for message in check_messages(messages)]
        if not (given.get("tools") or involves_tools(checked)):
            return self._render({**given, "messages": checked}, add_generation_prompt)
        style, variable = self.tools
        if variable is None:
            words = tell_in_words(checked, _tools(given.pop("tools", None)), style, self._takes_system)
            return self._render({**given, "messages": words}, add_generation_prompt)
        if variable != "tools" and "tools" in given:
            given.setdefault(variable, given["tools"])
        told = tell(checked, style)
        if _ONE_CALL in self.source:
            told = one_call_each(told)
        try:
            return self._render({**given, "messages": told}, add_generation_prompt)
        except RequestError as error:
            if not isinstance(error.__cause__, TypeError):
                raise
            return self._render({**given, "messages": with_text_arguments(told)}, add_generation_prompt)

    def _known(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message in the words of the template: most know no developers, and gpt-oss names thinking otherwise."""
        if message["role"] == "developer" and "developer" not in self.source:
            return message | {"role": "system"}
        thought = message.get("reasoning_content")
        if (
            thought
            and "reasoning_content" not in self.source
            and not (message.get("tool_calls") and message["content"])
        ):
            return {"thinking": thought, **message}
        return message

    def _render(self, given: dict[str, Any], add_generation_prompt: bool) -> Rendered:
        input_size = len(self.source) + _count(given)
        marked, table = self._marks.mark(given)
        variables = {
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            "add_generation_prompt": add_generation_prompt,
            "tools": None,
            "documents": None,
            **marked,
        }
        return unmark(self._compiled.render(variables, input_size, table), table)

    @property
    def _takes_system(self) -> bool:
        return re.search(r"raise_exception\([^)]*system", self.source, re.IGNORECASE) is None

    @cached_property
    def reasoning(self) -> Reasoning | None:
        """How the model thinks before it answers, and what to `render` with so that it does not.

        Raises `FormatError` and `UnsupportedError` as `render` does for a broken template.
        """
        return find_reasoning(self.source, self.variables)

    @cached_property
    def tools(self) -> tuple[ToolStyle, str | None]:
        """How the model calls tools, and the variable of the template that takes them; None where it takes none and
        they are explained in words. Raises as `reasoning`.
        """
        if self._with_tools is not None:
            return self._with_tools.tools
        return find_tool_style(self.source, self.variables)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that the template reads: its messages and what further keywords of `render` may set."""
        from .template_sandbox import free_variables

        assert self._compiled
        return frozenset(free_variables(self.source))

    @cached_property
    def _compiled(self) -> CompiledTemplate:
        # jinja2 takes a tenth of a second to import, and a raw prompt needs none of it.
        from .template_sandbox import CompiledTemplate

        return CompiledTemplate(self.source)

    @cached_property
    def _marks(self) -> LiteralMarks:
        return LiteralMarks(self._control, self._compiled.constants)


def _text(metadata: Mapping[str, object], key: str) -> str | None:
    value = metadata.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise FormatError(f"{key}: wants text, not {type(value).__name__}; fetch or convert the file again")


def _tools(tools: Any) -> list[Any]:
    """Checked as far as explaining them in words needs."""
    if tools is None:
        return []
    if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
        return [tool if isinstance(tool.get("function"), dict) else {"function": tool} for tool in tools]
    raise RequestError("tools wants a list of {'type': 'function', 'function': ...} mappings")


def _count(data: Any) -> int:
    """Characters and items in plain data."""
    if isinstance(data, str):
        return 1 + len(data)
    if isinstance(data, list):
        return 1 + sum(map(_count, data))
    if isinstance(data, dict):
        return 1 + sum(len(key) + _count(item) for key, item in data.items())
    return 1
