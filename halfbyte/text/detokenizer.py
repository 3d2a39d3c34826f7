"""`Detokenizer`: ids to text as they come, never half a character."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .tokenizer import Tokenizer


class Detokenizer:
    """All that `push` and `finish` return, joined, equals `tokenizer.decode(ids)`.

    `continues`: the ids go on from other text, so a leading space is kept. `spelled`: texts of control tokens that are
    shown all the same; those that the vocabulary has not mean nothing.
    """

    def __init__(self, tokenizer: Tokenizer, continues: bool = False, spelled: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        ids = tokenizer.vocabulary.ids if spelled else {}
        self._spelled = {ids[text]: text.encode("utf-8", "surrogateescape") for text in spelled if text in ids}
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = tokenizer.vocabulary.add_space_prefix and not continues

    def push(self, token: int) -> str:
        """The text that is certain now. Raises `RequestError` for an id outside the vocabulary."""
        piece = self._tokenizer.token_bytes(token)
        if not piece and token in self._spelled:
            piece = self._spelled[token]
        elif self._at_start and piece:
            self._at_start = False
            piece = self._tokenizer.without_lead(token, piece)
        return self._utf8.decode(piece)

    def finish(self) -> str:
        """What is still held back; a character that never became whole is U+FFFD."""
        return self._utf8.decode(b"", final=True)
