"""Values as Gemma writes them: JSON, save that keys are bare and strings stand between marks instead of quotes."""

from __future__ import annotations

import json
import re
from typing import Any

_DEEPEST = 64


def read_object(text: str, quote: str) -> dict[str, Any]:
    """The object that a text is. Raises `ValueError` for any other text."""
    reader = _Reader(text, quote)
    found = reader.object()
    reader.end()
    return found


def write_value(value: Any, quote: str) -> str:
    """A value of JSON in this form."""
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{write_value(one, quote)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(write_value(one, quote) for one in value) + "]"
    return json.dumps(value)


class _Reader:
    """Reads values; raises `ValueError` where it meets something else."""

    def __init__(self, text: str, quote: str) -> None:
        self._text, self._quote, self._at = text, quote, 0

    def object(self, depth: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._take("{")
        while not self._took("}"):
            key = self._string() if self._text.startswith(self._quote, self._at) else self._bare(":,{}[]")
            self._take(":")
            found[key] = self._value(depth + 1)
            if not self._took(","):
                self._take("}")
                break
        return found

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise ValueError

    def _value(self, depth: int) -> Any:
        self._space()
        if depth > _DEEPEST:
            raise ValueError
        if self._text.startswith(self._quote, self._at):
            return self._string()
        if self._text.startswith("{", self._at):
            return self.object(depth)
        if self._took("["):
            return self._list(depth)
        return json.loads(self._bare(",}]"))

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while not self._took("]"):
            found.append(self._value(depth + 1))
            if not self._took(","):
                self._take("]")
                break
        return found

    def _string(self) -> str:
        start = self._at + len(self._quote)
        end = self._text.index(self._quote, start)
        self._at = end + len(self._quote)
        return self._text[start:end]

    def _bare(self, ends: str) -> str:
        self._space()
        match = re.compile(f"[^{re.escape(ends)}]+").match(self._text, self._at)
        if match is None:
            raise ValueError
        self._at = match.end()
        return match[0].strip()

    def _space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _took(self, sign: str) -> bool:
        self._space()
        if self._text.startswith(sign, self._at):
            self._at += len(sign)
            return True
        return False

    def _take(self, sign: str) -> None:
        if not self._took(sign):
            raise ValueError
