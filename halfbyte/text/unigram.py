"""Unigram, the pieces with the best sum of scores: `tokenizer.ggml.model` "t5"."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import FormatError
from .charsmap import read_charsmap
from .fields import Fields
from .piece_model import PieceOptions
from .sentence_piece import SentencePiece
from .tokenizer import Tokenizer
from .vocabulary import KEY, Defaults, read_vocabulary

_DEFAULTS = Defaults(eos_id=1, unknown_id=2, add_eos=True, add_space_prefix=True)


def build(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata. Raises `FormatError`."""
    vocabulary = read_vocabulary(metadata, _DEFAULTS)
    if vocabulary.scores is None:
        raise FormatError(f"{KEY}scores: is missing, and without scores no piece can be chosen; convert the file again")
    fields = Fields(metadata)
    options = PieceOptions(
        unigram=True,
        add_dummy_prefix=vocabulary.add_space_prefix,
        remove_extra_whitespaces=fields.flag(KEY + "remove_extra_whitespaces", False),
        charsmap=read_charsmap(metadata),
    )
    fields.raise_problems()
    return SentencePiece(vocabulary, options)
