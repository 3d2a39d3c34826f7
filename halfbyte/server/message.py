"""`Message`: what the deltas of an answer add up to."""

from __future__ import annotations

from typing import Any

Delta = dict[str, Any]
"""A part of a message in OpenAI's form: `content`, `reasoning_content`, `tool_calls`."""


class Message:
    """Collects deltas; `as_dict` is the message."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, delta: Delta) -> None:
        """The next delta."""
        for name, value in delta.items():
            if name == "tool_calls":
                for part in value:
                    self._add_call(part)
            else:
                self._texts.setdefault(name, []).append(value)

    def as_dict(self) -> dict[str, Any]:
        """The whole message; one that only calls tools has no content."""
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        calls = [self._calls[index] for index in sorted(self._calls)]
        content = texts.pop("content", None if calls else "")
        message = {"role": "assistant", "content": content, "refusal": None, **texts}
        return message | {"tool_calls": calls} if calls else message

    def _add_call(self, part: dict[str, Any]) -> None:
        call = self._calls.setdefault(part["index"], {"id": "", "type": "function", "function": {}})
        call["id"] = part.get("id", call["id"])
        for name, text in part.get("function", {}).items():
            call["function"][name] = call["function"].get(name, "") + text
