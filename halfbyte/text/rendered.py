"""`Rendered`: a chat turned into text that still knows which characters people wrote."""

from __future__ import annotations

from collections.abc import Sequence

from .tokenizer import Tokenizer


class Rendered(str):
    """Text of a chat. `literal` holds the positions, ascending, of characters that must spell no control token.

    Whatever is made of it by string operations is an ordinary string and has lost them.
    """

    __slots__ = ("literal",)
    literal: Sequence[int]

    def __new__(cls, text: str, literal: Sequence[int] = ()) -> Rendered:
        """Mark `text`."""
        self = super().__new__(cls, text)
        self.literal = literal
        return self


def encode_chat(tokenizer: Tokenizer, rendered: str) -> list[int]:
    """Ids of a rendered chat: the template's control tokens are tokens, those in messages are text, and the begin token
    stands once.

    End tokens that the file puts behind texts to embed are left off: an answer is to follow.
    """
    literal = rendered.literal if isinstance(rendered, Rendered) else ()
    return tokenizer.encode(rendered, special=True, literal=literal, eos=False)
