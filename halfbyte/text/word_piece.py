"""WordPiece, the longest piece that fits, again and again: `tokenizer.ggml.model` "bert"."""

from __future__ import annotations

from collections.abc import Mapping

from .pipeline import Pipeline
from .rules import Flag, ModelRules, Rules
from .tokenizer import Tokenizer
from .vocabulary import Defaults, TokenType, Vocabulary, read_vocabulary

_DEFAULTS = Defaults(bos_id=101, sep_id=102, unknown_id=100, add_bos=True, add_sep=True, add_space_prefix=True)


def build(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata, for texts as BERT was trained on them. Raises `FormatError`."""
    vocabulary = read_vocabulary(metadata, _DEFAULTS)
    return Pipeline(vocabulary, _bert_rules(vocabulary), metadata)


def _bert_rules(vocabulary: Vocabulary) -> Rules:
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": not _has_capitals(vocabulary),
    }
    added = vocabulary.ids_of(TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED)
    return Rules(ModelRules("WordPiece"), normalizer, {"type": "BertPreTokenizer"}, dict.fromkeys(added, Flag(0)))


def _has_capitals(vocabulary: Vocabulary) -> bool:
    # The format has no word on it, and no capital is in a vocabulary learned from text without.
    tokens = vocabulary.tokens
    return any(tokens[i] != tokens[i].lower() for i in vocabulary.ids_of(TokenType.NORMAL) if tokens[i][0] != "[")
