"""`LiteralMarks`: follows what people wrote through a chat template, so that it can spell no control token.

Each character that begins or ends a control token is replaced in the messages by a rare symbol that they do not use,
and put back after rendering, where the places are remembered. One character stands for one, so a template may trim,
cut, join and compare as it likes; words that the template itself looks for, such as `</think>`, are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .rendered import Rendered

_RARE = (*range(0x1D000, 0x1D0F6), *range(0x13000, 0x13430))
"""Byzantine notes and hieroglyphs: printable, so that `repr` leaves them alone, and without case."""


class LiteralMarks:
    """What to mark for one template: `control` texts of the vocabulary, `constants` strings in the template."""

    def __init__(self, control: Iterable[str], constants: Iterable[str]) -> None:
        control = list(control)
        self._chars = sorted({char for text in control for char in _ends(text)})
        known = {word for word in constants if len(word) > 1 and any(char in word for char in self._chars)}
        # A word that holds, begins or ends a control token could help to spell it.
        safe = [w for w in known if not any(w in text[: len(w)] + text[-len(w) :] or text in w for text in control)]
        branches = [re.escape(word) for word in sorted(safe, key=len, reverse=True)]
        branches += ["[" + "".join(map(re.escape, self._chars)) + "]"] if self._chars else []
        self._pattern = re.compile("|".join(branches)) if branches else None

    def mark(self, data: Any) -> tuple[Any, dict[str, str]]:
        """A copy of plain data with its strings marked, and the table that takes the marks away, maybe empty."""
        if self._pattern is None:
            return data, {}
        used: set[str] = set()
        for text in _strings(data):
            used.update(text)
        if used.isdisjoint(self._chars):
            return data, {}
        free = (chr(code) for code in _RARE if chr(code) not in used)
        marks = dict(zip(self._chars, free, strict=False))
        return self._replace(data, marks), {mark: char for char, mark in marks.items()}

    def _replace(self, data: Any, marks: dict[str, str]) -> Any:
        if isinstance(data, str):
            assert self._pattern is not None
            return self._pattern.sub(lambda match: marks.get(match[0], match[0]), data)
        if isinstance(data, list):
            return [self._replace(item, marks) for item in data]
        if isinstance(data, dict):
            return {self._replace(key, marks): self._replace(item, marks) for key, item in data.items()}
        return data


def unmark(text: str, table: dict[str, str]) -> Rendered:
    """The text as it should read, with the places of all marks."""
    if not table:
        return Rendered(text)
    pattern = re.compile("[" + "".join(table) + "]")
    readable = text.translate({ord(mark): char for mark, char in table.items()})
    return Rendered(readable, [match.start() for match in pattern.finditer(text)])


def _ends(text: str) -> set[str]:
    # Letters and digits are poor marks: templates compare them, and nearly every control token has others.
    signs = [char for char in text if not char.isalnum()] or [text[0]]
    return {signs[0], signs[-1]}


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in data:
            yield from _strings(item)
    elif isinstance(data, dict):
        for key, item in data.items():
            yield key
            yield from _strings(item)
