"""`tokenizer_by_rules`: the tokenizer of a file that says all about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import FormatError
from .charsmap import read_charsmap
from .piece_model import PieceOptions
from .pipeline import Pipeline
from .rules import Rules, read_rules
from .sentence_piece import SentencePiece
from .tokenizer import Tokenizer
from .vocabulary import KEY, Defaults, Vocabulary, read_vocabulary


def tokenizer_by_rules(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata with rules. Raises `FormatError`, and `UnsupportedError` for later rules."""
    tokens = metadata.get(KEY + "tokens")
    rules = read_rules(metadata, len(tokens) if isinstance(tokens, Sequence) else 0)
    assert rules is not None
    vocabulary = read_vocabulary(metadata, Defaults(), rules)
    if rules.model.type == "SentencePiece":
        return _sentence_piece(vocabulary, rules, metadata)
    return Pipeline(vocabulary, rules, metadata)


def _sentence_piece(vocabulary: Vocabulary, rules: Rules, metadata: Mapping[str, object]) -> Tokenizer:
    if vocabulary.scores is None:
        raise FormatError(f"{KEY}scores: is missing, and without scores no piece can be chosen; convert the file again")
    model = rules.model
    options = PieceOptions(
        unigram=model.unigram,
        add_dummy_prefix=model.add_dummy_prefix,
        remove_extra_whitespaces=model.remove_extra_whitespaces,
        escape_whitespaces=model.escape_whitespaces,
        treat_whitespace_as_suffix=model.treat_whitespace_as_suffix,
        charsmap=read_charsmap(metadata),
    )
    return SentencePiece(vocabulary, options, rules)
