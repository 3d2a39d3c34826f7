"""`JsonScan`: finds where a JSON value ends in text that comes in pieces."""

from __future__ import annotations

import re

_OUTSIDE = re.compile(r'["{}\[\]<]')
_INSIDE = re.compile(r'["\\]')


class JsonScan:
    """Follows brackets and strings, no more: whether it is JSON otherwise is for others to say.

    `depth`: how many brackets are open already. `ended` once as many are closed as were opened, or where a `<` stands
    outside of strings, which no JSON has: there begins a mark that the model wrote instead of a bracket.
    """

    def __init__(self, depth: int = 0) -> None:
        self.ended = False
        self._depth = depth
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> int:
        """How many characters of the next piece belong to the value."""
        at = 0
        while not self.ended and at < len(text):
            at = self._string(text, at) if self._in_string else self._bracket(text, at)
        return at

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _INSIDE.search(text, at)
        if found is None:
            return len(text)
        self._escaped = found[0] == "\\"
        self._in_string = self._escaped
        return found.end()

    def _bracket(self, text: str, at: int) -> int:
        found = _OUTSIDE.search(text, at)
        if found is None:
            return len(text)
        if found[0] == "<":
            self.ended = True
            return found.start()
        if found[0] == '"':
            self._in_string = True
        else:
            self._depth += 1 if found[0] in "{[" else -1
            self.ended = self._depth <= 0
        return found.end()
