"""`Detokenizer`: ids to text as they come, never half a character."""

from __future__ import annotations

import codecs

from .tokenizer import Tokenizer


class Detokenizer:
    """All that `push` and `finish` return, joined, equals `tokenizer.decode(ids)`.

    `continues`: the ids go on from other text, so a leading space is kept.
    """

    def __init__(self, tokenizer: Tokenizer, continues: bool = False) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = tokenizer.vocabulary.add_space_prefix and not continues

    def push(self, token: int) -> str:
        """The text that is certain now. Raises `RequestError` for an id outside the vocabulary."""
        piece = self._tokenizer.token_bytes(token)
        if self._at_start and piece:
            self._at_start = False
            piece = self._tokenizer.without_lead(token, piece)
        return self._utf8.decode(piece)

    def finish(self) -> str:
        """What is still held back; a character that never became whole is U+FFFD."""
        return self._utf8.decode(b"", final=True)
