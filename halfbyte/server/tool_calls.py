"""`AnswerParts`: an answer's text, as it comes, as deltas of thinking, content and calls of tools."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable

from ..text.reasoning import ThinkingSplitter
from ..text.tool_styles import CallArguments, CallParser, CallStart, Content
from ..text.tool_styles import Delta as Part
from .message import Delta

_LETTERS = string.ascii_letters + string.digits


def new_call_id(length: int | None) -> str:
    """An id of a call, of the length that a model's template wants."""
    if length is None:
        return f"call_{secrets.token_hex(12)}"
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


class AnswerParts:
    """`thinking` and `calls` part the text where there are any; calls within thinking are thinking."""

    def __init__(
        self, thinking: ThinkingSplitter | None, calls: CallParser | None, new_id: Callable[[], str] = lambda: ""
    ) -> None:
        self._thinking, self._calls, self._new_id = thinking, calls, new_id
        self._count = 0

    @property
    def called(self) -> bool:
        """Whether there was a call."""
        return self._count > 0

    def push(self, text: str) -> list[Delta]:
        """What a piece of text adds."""
        if self._thinking is None:
            return self._answer(text)
        return [delta for kind, part in self._thinking.push(text) for delta in self._of(kind, part)]

    def finish(self) -> list[Delta]:
        """What was held back."""
        parts = self._thinking.finish() if self._thinking else []
        deltas = [delta for kind, part in parts for delta in self._of(kind, part)]
        return deltas + (self._deltas(self._calls.finish()) if self._calls else [])

    def _of(self, kind: str, text: str) -> list[Delta]:
        return self._answer(text) if kind == "answer" else [{"reasoning_content": text}]

    def _answer(self, text: str) -> list[Delta]:
        if self._calls is not None:
            return self._deltas(self._calls.push(text))
        return [{"content": text}] if text else []

    def _deltas(self, parts: list[Part]) -> list[Delta]:
        deltas: list[Delta] = []
        for part in parts:
            if isinstance(part, Content):
                deltas.append({"content": part.text})
            elif isinstance(part, CallStart):
                begun = {"id": self._new_id(), "type": "function", "function": {"name": part.name, "arguments": ""}}
                deltas.append({"tool_calls": [{"index": self._count, **begun}]})
                self._count += 1
            elif isinstance(part, CallArguments):
                piece = {"index": self._count - 1, "function": {"arguments": part.text}}
                deltas.append({"tool_calls": [piece]})
        return deltas
