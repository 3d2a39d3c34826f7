"""A SentencePiece model file built in memory, byte by byte.

Source: `sentencepiece_model.proto`. Only what the encoder reads is written: pieces, the kind of model, and a normalizer
that changes nothing but spaces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_VARINT, _BYTES, _FLOAT = 0, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_MODEL_TYPE, _UNKNOWN_ID, _BOS_ID, _EOS_ID, _PAD_ID, _BYTE_FALLBACK = 3, 40, 41, 42, 43, 35
_ADD_DUMMY_PREFIX, _REMOVE_EXTRA_SPACES = 3, 4
_BPE = 2
_NO_ID = (1 << 64) - 1


def piece_model(
    texts: list[bytes], scores: NDArray[np.float32], types: NDArray[np.int32], unknown_id: int, byte_fallback: bool
) -> bytes:
    """Serialized model. Shapes: `scores` f32[V] and `types` i32[V] for V `texts`."""
    # Score and type take the same 7 bytes in every piece: one table serves all of them.
    tails = np.empty((len(texts), 7), np.uint8)
    tails[:, 0] = _tag(_PIECE_SCORE, _FLOAT)
    tails[:, 1:5] = scores.astype("<f4").view(np.uint8).reshape(-1, 4)
    tails[:, 5] = _tag(_PIECE_TYPE, _VARINT)
    tails[:, 6] = types
    ends = tails.tobytes()
    heads = [_piece_head(length) for length in range(max(map(len, texts)) + 1)]
    parts = [
        heads[len(text)] + text + ends[at : at + 7] for text, at in zip(texts, range(0, len(ends), 7), strict=True)
    ]

    trainer = _number(_MODEL_TYPE, _BPE) + _number(_BYTE_FALLBACK, byte_fallback) + _number(_UNKNOWN_ID, unknown_id)
    trainer += b"".join(_number(field, _NO_ID) for field in (_BOS_ID, _EOS_ID, _PAD_ID))
    normalizer = _number(_ADD_DUMMY_PREFIX, 0) + _number(_REMOVE_EXTRA_SPACES, 0)
    parts += [_message(_TRAINER, trainer), _message(_NORMALIZER, normalizer)]
    return b"".join(parts)


def _piece_head(length: int) -> bytes:
    inner = bytes([_tag(_PIECE_TEXT, _BYTES)]) + _varint(length)
    return bytes([_tag(_PIECES, _BYTES)]) + _varint(len(inner) + length + 7) + inner


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
