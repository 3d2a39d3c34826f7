"""`Cursor`: reads that are checked against the end of the file before they happen."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

MAX_TEXT_BYTES = 1 << 30
CUT_SHORT = "the file is cut short or damaged; fetch it again"


class Cursor:
    """A position in the mapped bytes of one file. Every failed read is a `FormatError` with path and offset."""

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        self.path = path
        self.data = data
        self.size = len(data)
        self.position = 0
        self._view = data.data

    @property
    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return self.size - self.position

    def error(self, message: str, at: int | None = None) -> FormatError:
        """An error that names the file and, unless told otherwise, this position."""
        return FormatError(message, path=self.path, offset=self.position if at is None else at)

    def skip(self, n_bytes: int, what: str) -> int:
        """Step over `n_bytes` and return where they start."""
        if n_bytes > self.left:
            raise self.error(f"{what} needs {n_bytes} bytes but {self.left} are left: {CUT_SHORT}")
        start = self.position
        self.position = start + n_bytes
        return start

    def number(self, code: struct.Struct, what: str) -> int | float | bool:
        """One little-endian number."""
        found: int | float | bool = code.unpack_from(self._view, self.skip(code.size, what))[0]
        return found

    def u32(self, what: str) -> int:
        """One u32."""
        return int(_U32.unpack_from(self._view, self.skip(4, what))[0])

    def u64(self, what: str) -> int:
        """One u64."""
        return int(_U64.unpack_from(self._view, self.skip(8, what))[0])

    def raw_text(self, what: str, limit: int = MAX_TEXT_BYTES) -> bytes:
        """The bytes of one length-prefixed string of at most `limit` bytes."""
        at = self.position
        length = self.u64(f"the length of {what}")
        if length > limit:
            raise self.error(f"{what} is {length} bytes long, at most {limit} are allowed", at)
        start = self.skip(length, what)
        return bytes(self._view[start : start + length])

    def name(self, what: str, limit: int) -> str:
        """One string that must be valid UTF-8 and not empty, because it is looked up by name."""
        at = self.position
        raw = self.raw_text(what, limit)
        if not raw:
            raise self.error(f"{what} is empty: the file is damaged", at)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} {raw[:64]!r} is not valid UTF-8: the file is damaged", at) from None
