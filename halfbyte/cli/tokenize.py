"""`halfbyte tokenize`: what a model reads when it reads a text."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from . import terminal
from .command import Argument, Command, Option
from .json_text import json_text
from .model import locate
from .options import JSON, MODEL, SPECIAL
from .typed_text import message

if TYPE_CHECKING:
    from ..text.tokenizer import Tokenizer

NO_BOS = Option("--no-bos", bool, "Leave out the begin token even if the model wants one")


def run(values: Namespace) -> int:
    """Print one id and its text a line."""
    text = message(values.text, what="text")
    tokenizer = _tokenizer(values.model)
    ids = tokenizer.encode(text, special=values.special, bos=False if values.no_bos else None)
    pieces = [tokenizer.token_text(token) for token in ids]
    if values.json:
        terminal.line(json_text({"ids": ids, "pieces": pieces, "count": len(ids)}))
    else:
        for token, piece in zip(ids, pieces, strict=True):
            terminal.line(f"{token:>7} {piece!r}")
    return 0


def _tokenizer(reference: str) -> Tokenizer:
    """The tokenizer alone: no weight is read."""
    from ..formats import open_gguf
    from ..text import build_tokenizer

    with open_gguf(locate(reference)) as file:
        return build_tokenizer(file.metadata)


COMMAND = Command(
    "tokenize",
    about="Show the token ids of a text and the piece of text that each stands for.",
    example='halfbyte tokenize smollm2-135m "Hello, world"',
    run=run,
    arguments=(MODEL, Argument("TEXT", "the text; - or nothing reads it from a pipe", optional=True)),
    options=(SPECIAL, NO_BOS, JSON),
)
