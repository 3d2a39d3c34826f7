"""SentencePiece BPE with scores and byte fallback: `tokenizer.ggml.model` "llama"."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from ..errors import FormatError
from .piece_model import piece_model
from .tokenizer import SPACE_MARK, Tokenizer
from .vocabulary import KEY, Defaults, TokenType, Vocabulary, read_vocabulary

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BYTES = 256


class SentencePiece(Tokenizer):
    """Neighbours merge by the score of what they make; a character without a piece falls back to its bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._byte_of = _read_byte_tokens(vocabulary)
        self._processor = _build_processor(vocabulary, bool(self._byte_of))

    def _encode_plain(self, text: str) -> list[int]:
        ids: list[int] = self._processor.encode(text)
        return ids

    def _spell(self, token: int) -> bytes:
        byte = self._byte_of.get(token)
        if byte is not None:
            return bytes([byte])
        return self._text_bytes(token).replace(SPACE_MARK.encode(), b" ")


def build(metadata: Mapping[str, object]) -> Tokenizer:
    """A tokenizer from GGUF metadata. Raises `FormatError`."""
    defaults = Defaults(bos_id=1, eos_id=2, unknown_id=0, add_bos=True, add_space_prefix=True)
    vocabulary = read_vocabulary(metadata, defaults)
    if vocabulary.scores is None:
        raise FormatError(f"{KEY}scores: is missing, and without scores no piece can be chosen; convert the file again")
    return SentencePiece(vocabulary)


def _read_byte_tokens(vocabulary: Vocabulary) -> dict[int, int]:
    byte_of = {}
    for token in vocabulary.ids_of(TokenType.BYTE):
        match = _BYTE_TOKEN.fullmatch(vocabulary.tokens[token])
        if match is None:
            text = vocabulary.tokens[token]
            raise FormatError(f"{KEY}tokens: token {token} is typed as a byte but spelt {text!r}, not like <0x0A>")
        byte_of[token] = int(match[1], 16)
    if not byte_of and vocabulary.unknown_id is None:
        raise FormatError(
            f"{KEY}tokens: has neither byte tokens nor an unknown token, so not every text can be encoded"
        )
    if byte_of and len(set(byte_of.values())) < _BYTES:
        raise FormatError(f"{KEY}tokens: has tokens for {len(set(byte_of.values()))} bytes only, not for all {_BYTES}")
    return byte_of


def _build_processor(vocabulary: Vocabulary, byte_fallback: bool) -> SentencePieceProcessor:
    assert vocabulary.scores is not None
    types, unknown_id = _piece_types(vocabulary)
    processor = SentencePieceProcessor()
    model = piece_model(vocabulary.tokens, vocabulary.scores, types, unknown_id, byte_fallback)
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
