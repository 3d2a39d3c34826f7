"""`CallParser`: an answer as it comes, parted into content and calls of tools."""

from __future__ import annotations

from collections.abc import Callable

from .deltas import Call, CallArguments, CallEnd, CallStart, Content, Delta
from .frame import Frame, Tools
from .json_scan import JsonScan

_BETWEEN = ", ;\n\t\r]"
"""May stand between calls and behind the last one."""


class CallParser:
    """All text is handed on, as content or as arguments, save the marks of calls and the white space around them.

    A call counts once its name is that of a tool and its arguments have begun; from there to its end everything is its
    arguments, as written. What begins like a call and is none is content, unchanged.
    """

    def __init__(self, frame: Frame, tools: Tools) -> None:
        self._frame = frame
        self._tools = tools
        self._marks = frame.opens + frame.skips
        self._held = ""
        self._mark = ""  # what a call in question began with
        self._plain = False  # there is content: a bare call may come no more
        self._behind_call = False
        self._wrapped = False
        self._scan = JsonScan()
        self._state: Callable[[list[Delta]], bool] = self._text

    def push(self, text: str) -> list[Delta]:
        """What is certain now."""
        self._held += text
        deltas: list[Delta] = []
        while self._state(deltas):
            pass
        return deltas

    def finish(self) -> list[Delta]:
        """What is still held back, when the model has ended."""
        held, self._held = self._held, ""
        if self._state == self._arguments:
            return [CallEnd()]
        if self._state == self._behind:
            return []
        calls = self._calls(held) if self._state == self._head else []
        text = (self._mark if self._state == self._head else "") + held
        return [delta for call in calls for delta in call.deltas] or ([Content(text)] if text else [])

    def _text(self, deltas: list[Delta]) -> bool:
        """Content up to the next mark."""
        if self._behind_call:
            self._held = self._held.lstrip()
        found = self._find()
        if found is None:
            text, self._held = self._held[: self._certain()], self._held[self._certain() :]
            self._say(text, deltas)
            return False
        at, mark = found
        text = self._held[:at].rstrip()
        self._say(text, deltas)
        gap, self._held = self._held[len(text) : at], self._held[at + len(mark) :]
        if mark not in self._frame.skips:
            self._mark, self._state = gap + mark, self._head
        return True

    def _head(self, deltas: list[Delta]) -> bool:
        """What stands between a mark and the arguments, or the whole of a call."""
        held, end = self._held, self._end()
        name, start, self._wrapped = self._match()
        if name in self._tools:
            deltas.append(CallStart(name))
            self._held, self._scan, self._state = held[start:], JsonScan(), self._arguments
            return True
        if not name and end < 0 and self._frame.may_be(held):
            return False
        calls = self._calls(held[:end]) if end >= 0 else []
        if calls:
            deltas += [delta for call in calls for delta in call.deltas]
            self._held, self._state = held[end:], self._behind
            return True
        self._say(self._mark, deltas)
        self._plain, self._state = True, self._text
        return True

    def _arguments(self, deltas: list[Delta]) -> bool:
        count = self._scan.feed(self._held)
        if count:
            deltas.append(CallArguments(self._held[:count]))
            self._held = self._held[count:]
        if not self._scan.ended:
            return False
        deltas.append(CallEnd())
        self._scan = JsonScan(1)
        self._state = self._rest if self._wrapped else self._behind
        return True

    def _rest(self, deltas: list[Delta]) -> bool:
        """What an object has behind its arguments."""
        self._held = self._held[self._scan.feed(self._held) :]
        if self._scan.ended:
            self._state = self._behind
        return self._scan.ended

    def _behind(self, deltas: list[Delta]) -> bool:
        """What ends a call, or begins the next one of a list."""
        text, closes = self._held.lstrip(_BETWEEN), self._frame.closes
        if not text or (closes.startswith(text) and text != closes):
            return False
        self._behind_call = True
        if closes and text.startswith(closes):
            self._held, self._state = text[len(closes) :], self._text
        elif text[0] == "{":
            self._mark, self._held, self._state = "", text, self._head
        else:
            self._held, self._state = text, self._text
        return True

    def _find(self) -> tuple[int, str] | None:
        """Where the first mark stands, and which; the longest of several."""
        held = self._held
        found = [(at, -len(mark), mark) for mark in self._marks if (at := held.find(mark)) >= 0]
        lead = len(held) - len(held.lstrip())
        if self._frame.bare and not self._plain and held[lead : lead + 1] in ("{", "["):
            found.append((lead, 0, ""))
        return (min(found)[0], min(found)[2]) if found else None

    def _match(self) -> tuple[str, int, bool]:
        """The name in front of arguments, where these begin, and whether they are within an object."""
        for head in self._frame.heads:
            match = head.pattern.match(self._held)
            if match:
                return match["name"], match.end(), head.wrapped
        return "", 0, False

    def _end(self) -> int:
        """Where the call that `_held` begins with ends, its closing mark not counted; -1 where that is still open."""
        if self._frame.closes:
            return self._held.find(self._frame.closes)
        text = self._held.lstrip()
        scan = JsonScan()
        count = scan.feed(text) if text[:1] in ("{", "[") else 0
        return len(self._held) - len(text) + count if scan.ended else -1

    def _calls(self, text: str) -> list[Call]:
        """The calls that a text is, if all are of tools."""
        calls = self._frame.read(text.strip(), self._tools)
        return calls if all(call.name in self._tools for call in calls) else []

    def _certain(self) -> int:
        """Length of `_held` without what may become a mark, and the white space before that."""
        held = self._held
        if self._frame.bare and not self._plain and not held.strip():
            return 0
        longest = max(map(len, self._marks), default=0)
        for at in range(max(0, len(held) - longest + 1), len(held)):
            if any(mark.startswith(held[at:]) for mark in self._marks):
                return len(held[:at].rstrip())
        return len(held.rstrip())

    def _say(self, text: str, deltas: list[Delta]) -> None:
        if text:
            deltas.append(Content(text))
            self._plain, self._behind_call = True, False
