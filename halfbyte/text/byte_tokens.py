"""`read_byte_tokens`: the tokens that stand for one byte each, as `<0x0A>`."""

from __future__ import annotations

import re

from ..errors import FormatError
from .vocabulary import KEY, TokenType, Vocabulary

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def read_byte_tokens(vocabulary: Vocabulary) -> dict[int, int]:
    """Byte by token id. Raises `FormatError` for one that is spelt otherwise."""
    byte_of = {}
    for token in vocabulary.ids_of(TokenType.BYTE):
        match = _BYTE_TOKEN.fullmatch(vocabulary.tokens[token])
        if match is None:
            text = vocabulary.tokens[token]
            raise FormatError(f"{KEY}tokens: token {token} is typed as a byte but spelt {text!r}, not like <0x0A>")
        byte_of[token] = int(match[1], 16)
    return byte_of
