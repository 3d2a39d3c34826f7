"""`MarkedThinking`: parts thinking from answer where texts such as `<think>` and `</think>` stand around it."""

from __future__ import annotations

from .thinking_marks import Kind, Marks, Parts


class MarkedThinking:
    """Thinking may begin only before there is any answer: an answer may speak of `<think>` as it likes.

    The marks and the white space around them are left out, as templates put it there; all else is handed on, in order,
    and at once unless it may become a mark. `inside`: the prompt ended within thinking.
    """

    def __init__(self, marks: Marks, inside: bool) -> None:
        self._marks = marks
        self._held = ""
        self._thinking = inside
        self._answering = False
        self._behind_mark = inside

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
        if self._thinking:
            return _part("thinking", held)
        closes = self._marks.answer_closes
        closed = self._answering and closes and held.rstrip().endswith(closes)
        return _part("answer", held.rstrip().removesuffix(closes).rstrip() if closed else held)

    def _step(self, parts: Parts) -> bool:
        """Go on by one mark or by all there is; whether there may be more to do."""
        if self._behind_mark:
            self._held = self._held.lstrip()
        if self._answering:
            return self._answer(parts)
        return self._think(parts) if self._thinking else self._begin()

    def _think(self, parts: Parts) -> bool:
        before, closed, after = self._held.partition(self._marks.closes)
        certain = before.rstrip() if closed else before[: _certain(before, self._marks.closes)]
        parts += _part("thinking", certain)
        self._held = after if closed else before[len(certain) :]
        self._behind_mark = bool(closed) or (self._behind_mark and not certain)
        self._thinking = not closed
        return bool(closed)

    def _begin(self) -> bool:
        text = self._held.lstrip()
        for mark in filter(None, (self._marks.opens, self._marks.answer_opens)):
            if text.startswith(mark):
                self._held = text[len(mark) :]
                self._behind_mark = True
                self._thinking = mark == self._marks.opens
                self._answering = not self._thinking
                return True
        if any(mark.startswith(text) for mark in (self._marks.opens, self._marks.answer_opens)):
            return False
        self._answering = True
        return True

    def _answer(self, parts: Parts) -> bool:
        closes = self._marks.answer_closes
        certain = _certain(self._held, closes) if closes else len(self._held)
        parts += _part("answer", self._held[:certain])
        self._held = self._held[certain:]
        self._behind_mark = self._behind_mark and not certain
        return False


def _part(kind: Kind, text: str) -> Parts:
    return [(kind, text)] if text else []


def _certain(text: str, mark: str) -> int:
    """Length of `text` without the mark, or beginning of it, and the white space that it ends with."""
    bare = text.rstrip()
    for end in (text, bare):
        for length in range(min(len(mark), len(end)), 0, -1):
            if end.endswith(mark[:length]):
                return len(end[:-length].rstrip())
    return len(bare)
