"""`Blocks`: where the paragraphs and code of a Markdown text end, as the text comes."""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Blocks:
    """A blank line ends a block, and within code the fence that closes it."""

    def __init__(self) -> None:
        self._block = ""
        self._line = ""
        self._fence = ""

    def push(self, text: str) -> Iterator[tuple[str, str | None]]:
        """Pieces of the text, and the whole block where a piece ends one."""
        while "\n" in text:
            piece, _, text = text.partition("\n")
            line, self._line = self._line + piece, ""
            self._block += piece + "\n"
            if self._ends(line):
                block, self._block = self._block, ""
                yield piece + "\n", block
            else:
                yield piece + "\n", None
        if text:
            self._line += text
            self._block += text
            yield text, None

    def finish(self) -> str:
        """What no end was seen of."""
        block, self._block, self._line, self._fence = self._block, "", "", ""
        return block

    def _ends(self, line: str) -> bool:
        fence = FENCE.fullmatch(line)
        if self._fence:
            closes = fence is not None and fence[1].startswith(self._fence) and not fence[2].strip()
            if closes:
                self._fence = ""
            return closes
        if fence is not None:
            self._fence = fence[1]
            return False
        return not line.strip()
