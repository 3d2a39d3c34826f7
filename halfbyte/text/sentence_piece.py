"""SentencePiece with scores and byte fallback: `tokenizer.ggml.model` "llama"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from ..errors import FormatError
from .added_tokens import splitter_of
from .byte_tokens import read_byte_tokens
from .piece_model import PieceOptions, piece_model
from .rules import Rules
from .splitter import Splitter
from .tokenizer import SPACE_MARK, Tokenizer
from .vocabulary import KEY, Defaults, TokenType, Vocabulary, read_vocabulary

_BYTES = 256
_MARK = SPACE_MARK.encode()


class SentencePiece(Tokenizer):
    """Neighbours merge by the score of what they make, or the pieces with the best sum are taken; a character without
    a piece falls back to its bytes.
    """

    def __init__(self, vocabulary: Vocabulary, options: PieceOptions, rules: Rules | None = None) -> None:
        super().__init__(vocabulary)
        self._rules = rules
        self._options = options
        self._byte_of = _check_byte_tokens(vocabulary, strict=rules is None and not options.unigram)
        self._leads = self._leads and not options.add_dummy_prefix and rules is None
        self._processor = _build_processor(vocabulary, bool(self._byte_of), options, rules)

    def _encode_plain(self, text: str) -> list[int]:
        ids: list[int] = self._processor.encode(text)
        return ids

    def _spell(self, token: int) -> bytes:
        byte = self._byte_of.get(token)
        if byte is not None:
            return bytes([byte])
        return self._text_bytes(token).replace(_MARK, b" ")

    def _encode_parts(self, text: str, special: bool, literal: Sequence[int]) -> list[int]:
        if self._rules is None:
            return super()._encode_parts(text, special, literal)
        ids: list[int] = []
        for start, part in self._splitters[special].cut(text, literal):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self._inner.encode(part) if start and self._goes_on(part) else self._encode_plain(part)
        return ids

    def _goes_on(self, part: str) -> bool:
        """Whether text behind a special token gets no space of its own."""
        assert self._rules is not None
        # Where the library takes leading space away, its own stands for it.
        has_space = self._options.remove_extra_whitespaces and part[0].isspace()
        return self._rules.model.prefix_once and not has_space

    @cached_property
    def _inner(self) -> SentencePieceProcessor:
        """For text that is not the first."""
        options = replace(self._options, add_dummy_prefix=False)
        return _build_processor(self.vocabulary, bool(self._byte_of), options, self._rules)

    @cached_property
    def _splitters(self) -> dict[bool, Splitter]:
        assert self._rules is not None
        return {special: splitter_of(self.vocabulary, self._rules.added, special) for special in (False, True)}


def build(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata. Raises `FormatError`."""
    defaults = Defaults(bos_id=1, eos_id=2, unknown_id=0, add_bos=True, add_space_prefix=True)
    vocabulary = read_vocabulary(metadata, defaults)
    if vocabulary.scores is None:
        raise FormatError(f"{KEY}scores: is missing, and without scores no piece can be chosen; convert the file again")
    return SentencePiece(vocabulary, PieceOptions())


def _check_byte_tokens(vocabulary: Vocabulary, strict: bool) -> dict[int, int]:
    byte_of = read_byte_tokens(vocabulary)
    if not byte_of and vocabulary.unknown_id is None:
        raise FormatError(
            f"{KEY}tokens: has neither byte tokens nor an unknown token, so not every text can be encoded"
        )
    if strict and byte_of and len(set(byte_of.values())) < _BYTES:
        raise FormatError(f"{KEY}tokens: has tokens for {len(set(byte_of.values()))} bytes only, not for all {_BYTES}")
    return byte_of


def _build_processor(
    vocabulary: Vocabulary, byte_fallback: bool, options: PieceOptions, rules: Rules | None
) -> SentencePieceProcessor:
    assert vocabulary.scores is not None
    types, unknown_id = _piece_types(vocabulary)
    tokens, n = vocabulary.tokens, len(types)
    if rules is not None:
        n = min(rules.model.pieces or n, n)
        user_defined = vocabulary.types[:n] == TokenType.USER_DEFINED
        types[:n][user_defined] = TokenType.USER_DEFINED
        tokens = [text.replace(" ", SPACE_MARK) for text in tokens[:n]]
        if unknown_id >= n:
            raise FormatError(f"{KEY}unknown_token_id: is {unknown_id}, and the model has {n} pieces")
    processor = SentencePieceProcessor()
    model = piece_model(tokens, vocabulary.scores[:n], types[:n], unknown_id, byte_fallback, options)
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise FormatError(f"{KEY}tokens: SentencePiece cannot use this vocabulary ({error})") from error
    return processor


def _piece_types(vocabulary: Vocabulary) -> tuple[NDArray[np.int32], int]:
    types = vocabulary.types.copy()
    # User-defined tokens are cut out before; the library would find them only under its own spelling of a space, which
    # may be that of another piece, and it wants no two alike.
    types[(types == TokenType.UNDEFINED) | (types == TokenType.USER_DEFINED)] = TokenType.UNUSED
    unknown_ids = vocabulary.ids_of(TokenType.UNKNOWN)
    # The library wants exactly one unknown piece.
    unknown_id = unknown_ids[0] if unknown_ids else vocabulary.unknown_id
    types[unknown_ids] = TokenType.CONTROL
    types[unknown_id] = TokenType.UNKNOWN
    return types, unknown_id or 0
