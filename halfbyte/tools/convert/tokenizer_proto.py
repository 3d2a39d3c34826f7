"""`read_proto`: the fields of a protocol buffer message, without its schema.

Source: the wire format of protocol buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ...errors import FormatError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


def read_proto(data: bytes, path: Path) -> Iterator[tuple[int, int | bytes]]:
    """Numbers of the fields in order, each with an integer, or its bytes where it has a length or a fixed width.

    Raises `FormatError` where the bytes are no such message.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, path)
        wire, number = tag & 7, tag >> 3
        if wire == _VARINT:
            value, at = _varint(data, at, path)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at, path)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise FormatError("is no SentencePiece model; fetch it again", path=path, offset=at)
        if not number or at + size > len(data):
            raise FormatError("is truncated or no SentencePiece model; fetch it again", path=path, offset=at)
        yield number, data[at : at + size]
        at += size


def as_float(raw: int | bytes) -> float:
    """The value of a field of 32 bits."""
    number: float = struct.unpack("<f", raw)[0] if isinstance(raw, bytes) and len(raw) == 4 else float("nan")
    return number


def _varint(data: bytes, at: int, path: Path) -> tuple[int, int]:
    value = 0
    for i, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise FormatError("is truncated or no SentencePiece model; fetch it again", path=path, offset=at)
