"""`Turn`: one message of a conversation, and what is known of how it came to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Turn:
    """`thinking` went before the answer; it is shown and saved, and not told to the model again.

    Of an answer of this session `prompt_ids` and `ids` are its tokens.
    """

    role: str
    content: str
    thinking: str = ""
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()

    @property
    def message(self) -> dict[str, str]:
        """As templates take it."""
        return {"role": self.role, "content": self.content}

    def take(self, parts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Grow by parts of an output, and hand those on that are not empty."""
        for kind, text in parts:
            if kind == "thinking":
                self.thinking += text
            else:
                self.content += text
            if text:
                yield kind, text
