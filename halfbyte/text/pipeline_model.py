"""`build_model`: the library's BPE, Unigram or WordPiece of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers.models import Unigram, WordPiece

from ..errors import FormatError
from .fields import Fields
from .library_errors import library_errors
from .merges import build_bpe, split_merges
from .rules import Flag, Rules
from .vocabulary import KEY, TokenType, Vocabulary
from .word_starts import library_spelling

_NEVER_PLAIN = (TokenType.CONTROL, TokenType.UNUSED)


def build_model(
    vocabulary: Vocabulary, rules: Rules, metadata: Mapping[str, object]
) -> tuple[Any, NDArray[np.int64] | None]:
    """The model, and the ids of the file by those of the model where they differ. Raises `FormatError`."""
    plain = _plain_tokens(vocabulary, rules)
    unk = None if vocabulary.unknown_id is None else vocabulary.tokens[vocabulary.unknown_id]
    with library_errors(_damaged):
        if rules.model.type == "BPE":
            return _build_bpe(vocabulary, rules, metadata, plain, unk), None
        if rules.model.type == "Unigram":
            return _build_unigram(vocabulary, rules, plain)
        if unk is None:
            raise FormatError(f"{KEY}unknown_token_id: is missing, and a WordPiece vocabulary needs it")
        words = {library_spelling(token): i for token, i in plain.items()}
        longest = rules.model.max_input_chars_per_word
        return WordPiece(words, unk_token=library_spelling(unk), max_input_chars_per_word=longest), None


def _plain_tokens(vocabulary: Vocabulary, rules: Rules) -> dict[str, int]:
    # Without them in the model, no plain text can ever spell a control token.
    plain = dict(vocabulary.ids)
    added_only = {i for i, flags in rules.added.items() if Flag.IN_MODEL not in flags}
    for token in added_only.union(vocabulary.ids_of(*_NEVER_PLAIN)):
        if token != vocabulary.unknown_id:
            del plain[vocabulary.tokens[token]]
    return plain


def _build_bpe(
    vocabulary: Vocabulary, rules: Rules, metadata: Mapping[str, object], plain: dict[str, int], unk: str | None
) -> Any:
    tokens, options = vocabulary.tokens, rules.model
    if rules.merges is None:
        fields = Fields(metadata)
        merges = split_merges(fields.strings(KEY + "merges", required=False))
        fields.raise_problems()
    else:
        left, right = rules.merges.T.tolist()
        merges = [(tokens[a], tokens[b]) for a, b in zip(left, right, strict=True)]
    if options.unk and unk is None:
        raise FormatError(f"{KEY}unknown_token_id: is missing, and the rules for words ask for it")
    return build_bpe(
        plain,
        vocabulary.ids,
        merges,
        unk_token=unk if options.unk else None,
        fuse_unk=options.fuse_unk,
        byte_fallback=options.byte_fallback,
        ignore_merges=options.ignore_merges,
    )


def _build_unigram(vocabulary: Vocabulary, rules: Rules, plain: dict[str, int]) -> tuple[Any, NDArray[np.int64]]:
    if vocabulary.scores is None:
        raise FormatError(f"{KEY}scores: is missing, and without scores no piece can be chosen")
    scores = vocabulary.scores if rules.scores is None else rules.scores
    ids = np.fromiter(plain.values(), np.int64, len(plain))
    pieces = list(zip(plain, scores[ids].tolist(), strict=True))
    places = np.flatnonzero(ids == vocabulary.unknown_id)
    unk = int(places[0]) if rules.model.unk and len(places) else None
    return Unigram(pieces, unk, rules.model.byte_fallback), ids


def _damaged(reason: str) -> FormatError:
    return FormatError(f"{KEY}tokens: the tokenizers library cannot use this vocabulary ({reason})")
