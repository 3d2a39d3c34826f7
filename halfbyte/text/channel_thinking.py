"""`ChannelThinking`: parts thinking from answer where an output is a row of messages, as gpt-oss writes them.

A message is `<|channel|>NAME<|message|>TEXT`, `<|end|>` stands between two and `<|start|>assistant` before the second.
What is said on channel "analysis" is thinking. A message with a recipient, which is a tool call, is handed on as it is,
header and all: who parses calls needs it.
"""

from __future__ import annotations

from .thinking_marks import CHANNEL, Kind, Parts

_START, _MESSAGE, _END = "<|start|>", "<|message|>", "<|end|>"
_THINKING_CHANNEL = "analysis"
_LONGEST_HEADER = 512
CONTROLS = (CHANNEL, _START, _MESSAGE, _END, "<|constrain|>")


class ChannelThinking:
    """The output of one answer; all text between the marks is handed on."""

    def __init__(self) -> None:
        self._held = ""
        self._kind: Kind | None = None  # None: before or within a header

    def push(self, text: str) -> Parts:
        """What is certain now: pairs of kind and text, which is not empty."""
        self._held += text
        parts: Parts = []
        while self._step(parts):
            pass
        return parts

    def finish(self) -> Parts:
        """What is still held back, when the model has ended."""
        held, self._held = self._held, ""
        return [(self._kind or "answer", held)] if held else []

    def _step(self, parts: Parts) -> bool:
        if self._kind is None:
            return self._header(parts)
        before, ended, after = self._held.partition(_END)
        certain = before if ended else before[: len(before) - _begun(before, _END)]
        if certain:
            parts.append((self._kind, certain))
        self._held = after if ended else before[len(certain) :]
        self._kind = None if ended else self._kind
        return bool(ended)

    def _header(self, parts: Parts) -> bool:
        """Read a header whole; a text that has none is answer."""
        begins = (CHANNEL, f"{_START}assistant", " to=")
        held = self._held
        if not any(held.startswith(text) or text.startswith(held) for text in begins):
            self._kind = "answer"
            return True
        header, ended, body = held.partition(_MESSAGE)
        if not ended and len(held) < _LONGEST_HEADER:
            return False
        channel = header.rpartition(CHANNEL)[2].split()
        self._kind = "thinking" if channel[:1] == [_THINKING_CHANNEL] else "answer"
        if " to=" in header or not ended:
            self._kind, body = "answer", header + ended + body
            at = len(header + ended)
            parts.append(("answer", body[:at]))
            body = body[at:]
        self._held = body
        return True


def _begun(text: str, mark: str) -> int:
    """Length of the longest beginning of `mark` that `text` ends with."""
    return next((length for length in range(len(mark) - 1, 0, -1) if text.endswith(mark[:length])), 0)
