"""`read_input`: the items that a response continues, as messages."""

from __future__ import annotations

from typing import Any

from .errors import ApiError, invalid
from .fields import Fields, shown

ROLES = ("user", "assistant", "system", "developer")
TEXTS = ("input_text", "output_text", "text")
Messages = list[dict[str, Any]]


def read_input(fields: Fields) -> Messages:
    """`instructions` and `input`; raises `ApiError` that names the item."""
    instructions, given = fields.text("instructions"), fields.take("input")
    messages: Messages = [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise fields.wrong("input", "a text or a list of items, not empty", given)
    reader = _Reader(messages)
    for at, item in enumerate(given):
        reader.add(item, f"input[{at}]")
    return messages


class _Reader:
    """Puts items together: a message's thinking and calls are items of their own."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._thought = ""

    def add(self, item: Any, where: str) -> None:
        """The next item."""
        if not isinstance(item, dict):
            raise invalid(f"{where} must be an object, not {shown(item)}", where)
        fields = Fields(item, f"{where}.")
        kind = fields.text("type") or "message"
        fields.ignore("id", "status")
        if kind not in KINDS:
            raise ApiError(
                400, f"{where} is an item of type {shown(kind)}, and here there are {', '.join(KINDS)}",
                param=f"{where}.type", code="unsupported_value",
            )  # fmt: skip
        KINDS[kind](self, fields)
        fields.finish()

    def message(self, fields: Fields) -> None:
        role = fields.choice("role", ROLES)
        if role is None:
            raise invalid(f"{fields.path('role')} is missing", fields.path("role"), "missing_field")
        fields.ignore("phase")
        content = _content(fields.take("content"), fields.path("content"))
        self._put({"role": role, "content": content}, role == "assistant")

    def call(self, fields: Fields) -> None:
        call = {name: fields.text(name) for name in ("call_id", "name", "arguments")}
        for name, value in call.items():
            if value is None:
                raise invalid(f"{fields.path(name)} is missing", fields.path(name), "missing_field")
        function = {"name": call["name"], "arguments": call["arguments"]}
        made = {"id": call["call_id"], "type": "function", "function": function}
        if self._messages and self._messages[-1]["role"] == "assistant" and not self._thought:
            self._messages[-1].setdefault("tool_calls", []).append(made)
        else:
            self._put({"role": "assistant", "content": "", "tool_calls": [made]}, True)

    def result(self, fields: Fields) -> None:
        call = fields.text("call_id")
        if call is None:
            raise invalid(f"{fields.path('call_id')} is missing", fields.path("call_id"), "missing_field")
        content = _content(fields.take("output"), fields.path("output"))
        self._put({"role": "tool", "tool_call_id": call, "content": content}, False)

    def thinking(self, fields: Fields) -> None:
        fields.ignore("summary", "encrypted_content")
        content = fields.take("content")
        if content is not None:
            self._thought += _content(content, fields.path("content"), ("reasoning_text", "text"))

    def _put(self, message: dict[str, Any], thinks: bool) -> None:
        if thinks and self._thought:
            message["reasoning_content"] = self._thought
        self._thought = ""
        self._messages.append(message)


KINDS = {
    "message": _Reader.message,
    "function_call": _Reader.call,
    "function_call_output": _Reader.result,
    "reasoning": _Reader.thinking,
}


def _content(value: Any, where: str, kinds: tuple[str, ...] = TEXTS) -> str:
    """A text, or the texts of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise invalid(f"{where} must be a text or a list of parts, not {shown(value)}", where)
    return "".join(_part(part, f"{where}[{at}]", kinds) for at, part in enumerate(value))


def _part(part: Any, where: str, kinds: tuple[str, ...]) -> str:
    if not isinstance(part, dict):
        raise invalid(f"{where} must be an object, not {shown(part)}", where)
    fields = Fields(part, f"{where}.")
    kind = fields.text("type")
    if kind not in kinds:
        message = f"{where} is a part of type {shown(kind)}, and only texts are understood: {', '.join(kinds)}"
        raise invalid(message, f"{where}.type", "unsupported_value")
    text = fields.text("text")
    if text is None:
        raise invalid(f"{where}.text is missing", f"{where}.text", "missing_field")
    fields.ignore("annotations", "logprobs")
    fields.finish()
    return text
