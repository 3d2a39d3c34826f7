"""A SentencePiece model file built in memory.

Source: `sentencepiece_model.proto`. Only what the encoder reads is written: pieces, the kind of model, and how to
normalize.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

_VARINT, _BYTES, _FLOAT = 0, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_MODEL_TYPE, _UNKNOWN_ID, _BOS_ID, _EOS_ID, _PAD_ID, _BYTE_FALLBACK = 3, 40, 41, 42, 43, 35
_SUFFIX_SPACES = 24
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_EXTRA_SPACES, _ESCAPE_SPACES = 2, 3, 4, 5
_UNIGRAM, _BPE = 1, 2
_NO_ID = (1 << 64) - 1

_HEAD, _TAIL, _INNER_HEAD = 8, 7, 4
_MAX_BODY = (1 << 21) - 1


@dataclass(frozen=True)
class PieceOptions:
    """What the library does by itself; by default it merges, and changes nothing but spaces to their mark.

    `charsmap` is walked without looking at bounds: it must have been checked.
    """

    unigram: bool = False
    add_dummy_prefix: bool = False
    remove_extra_whitespaces: bool = False
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False
    charsmap: bytes = b""


_PLAIN = PieceOptions()


def piece_model(
    tokens: list[str],
    scores: NDArray[np.float32],
    types: NDArray[np.int32],
    unknown_id: int,
    byte_fallback: bool,
    options: PieceOptions = _PLAIN,
) -> bytes:
    """Serialized model. Shapes: `scores` f32[V] and `types` i32[V] for V `tokens`."""
    kind = _UNIGRAM if options.unigram else _BPE
    trainer = _number(_MODEL_TYPE, kind) + _number(_BYTE_FALLBACK, byte_fallback) + _number(_UNKNOWN_ID, unknown_id)
    trainer += b"".join(_number(field, _NO_ID) for field in (_BOS_ID, _EOS_ID, _PAD_ID))
    trainer += _number(_SUFFIX_SPACES, options.treat_whitespace_as_suffix)
    normalizer = _message(_CHARSMAP, options.charsmap) + _number(_ADD_DUMMY_PREFIX, options.add_dummy_prefix)
    normalizer += _number(_REMOVE_EXTRA_SPACES, options.remove_extra_whitespaces)
    normalizer += _number(_ESCAPE_SPACES, options.escape_whitespaces)
    return _pieces(tokens, scores, types) + _message(_TRAINER, trainer) + _message(_NORMALIZER, normalizer)


def _pieces(tokens: list[str], scores: NDArray[np.float32], types: NDArray[np.int32]) -> bytes:
    """Every length is a varint padded to three bytes: so 8 bytes stand before each text and 7 behind it, and all
    pieces are written at once.
    """
    text, lengths = _join(tokens)
    bodies = _INNER_HEAD + lengths + _TAIL
    if bodies.max() > _MAX_BODY:
        raise FormatError(f"tokenizer.ggml.tokens: token {bodies.argmax()} is {lengths.max()} bytes long")
    frame = np.empty((len(tokens), _HEAD + _TAIL), np.uint8)
    frame[:, 0] = _tag(_PIECES, _BYTES)
    frame[:, 1:4] = _padded(bodies)
    frame[:, 4] = _tag(_PIECE_TEXT, _BYTES)
    frame[:, 5:8] = _padded(lengths)
    frame[:, 8] = _tag(_PIECE_SCORE, _FLOAT)
    frame[:, 9:13] = scores.astype("<f4").view(np.uint8).reshape(-1, 4)
    frame[:, 13] = _tag(_PIECE_TYPE, _VARINT)
    frame[:, 14] = types

    counts = np.full((len(tokens), 3), (_HEAD, 0, _TAIL), np.int64)
    counts[:, 1] = lengths
    is_text = np.repeat(np.tile([False, True, False], len(tokens)), counts.ravel())
    out = np.empty(len(is_text), np.uint8)
    out[is_text] = text
    out[~is_text] = frame.ravel()
    return out.tobytes()


def _join(tokens: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All texts in UTF-8, one after the other, and the bytes in each."""
    joined = np.frombuffer("\0".join(tokens).encode("utf-8", "surrogateescape"), np.uint8)
    ends = np.flatnonzero(joined == 0)
    if len(ends) != len(tokens) - 1:
        raise FormatError("tokenizer.ggml.tokens: a token holds a NUL character, which SentencePiece does not take")
    return joined[joined != 0], np.diff(np.concatenate(([-1], ends, [len(joined)]))) - 1


def _padded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Varints of three bytes, i64[V, 3]."""
    return np.stack((values & 0x7F | 0x80, values >> 7 & 0x7F | 0x80, values >> 14), axis=1)


def _tag(field: int, wire: int) -> int:
    return field << 3 | wire


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(_tag(field, _VARINT)) + _varint(int(value))


def _message(field: int, body: bytes) -> bytes:
    return _varint(_tag(field, _BYTES)) + _varint(len(body)) + body
