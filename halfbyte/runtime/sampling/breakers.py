"""`Breakers`: texts over which no repetition reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Spell = Callable[[int], bytes]
"""`Tokenizer.token_bytes`: the UTF-8 bytes of a token."""


class Breakers:
    """Looks for the texts in what tokens spell, so it does not matter how a text falls apart into tokens."""

    def __init__(self, texts: Iterable[str] = (), spell: Spell = lambda token: b"") -> None:
        self._texts = [text.encode() for text in texts]
        self._reach = max(map(len, self._texts), default=1) - 1
        self._spell = spell

    def within(self, token: int) -> bool:
        """Whether a token holds one of the texts whole."""
        piece = self._spell(token)
        return any(text in piece for text in self._texts)

    def end_with(self, recent: NDArray[np.integer[Any]]) -> bool:
        """Whether one of the texts ends in the first of `recent` [n], newest first."""
        if not self._texts:
            return False
        piece = self._spell(int(recent[0]))
        before = b""
        for token in recent[1:]:
            if len(before) >= self._reach:
                break
            before = self._spell(int(token)) + before
        spelt = before + piece
        # A text that ends before the piece was found with an earlier token.
        return any(spelt.find(text, max(len(before) - len(text) + 1, 0)) >= 0 for text in self._texts)
