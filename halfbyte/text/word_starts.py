"""How WordPiece vocabularies mark the pieces that begin a word.

The library writes "##" before all others; GGUF files carry the mark of a space before those that do begin one, and
nothing before others. Texts in brackets, as `[CLS]`, stay as they are.
"""

from __future__ import annotations

from .tokenizer import SPACE_MARK

CONTINUATION = "##"


def file_spelling(token: str) -> str:
    """The piece as a GGUF file spells it."""
    if _in_brackets(token):
        return token
    continues = token.startswith(CONTINUATION) and token != CONTINUATION
    return token.removeprefix(CONTINUATION) if continues else SPACE_MARK + token


def library_spelling(token: str) -> str:
    """The piece as the library spells it."""
    if _in_brackets(token):
        return token
    starts = token.startswith(SPACE_MARK) and token != SPACE_MARK
    return token.removeprefix(SPACE_MARK) if starts else CONTINUATION + token


def _in_brackets(token: str) -> bool:
    return token.startswith("[") and token.endswith("]") and len(token) > 1
