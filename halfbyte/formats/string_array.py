"""`StringArray`: the strings of a metadata array, left in the file until someone asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .text_starts import HEADER

_ERRORS = "surrogateescape"


class StringArray(Sequence[str]):
    """A sequence of strings over mapped bytes; holding it keeps the mapping alive.

    Bytes that are not UTF-8 become lone surrogates, as in Python's file names, so that nothing is lost; `raw` gives
    them as they are.
    """

    def __init__(self, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        """`data` u8[size] is the whole file, `starts` as `find_text_starts` returns them."""
        self._data = data
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.raw(index).decode("utf-8", _ERRORS)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"StringArray({len(self)} strings)"

    def raw(self, index: int) -> bytes:
        """The bytes of string `index`; raises `IndexError` past the ends, as every sequence does."""
        i = range(len(self))[index]
        return self._data[self._starts[i] : self._starts[i + 1] - HEADER].tobytes()

    def tolist(self) -> list[str]:
        """All strings, in one pass over the bytes."""
        if len(self) == 0:
            return []
        headers = self._starts[:-1] - HEADER
        first = int(headers[0])
        text = self._data[first : int(self._starts[-1]) - HEADER].copy()
        keep = np.ones(len(text), np.bool_)
        for byte in range(HEADER - 1):
            keep[headers - first + byte] = False
        # The last byte of each length stays as a NUL: it ends a half character just as the end of a string does.
        text[headers - first + HEADER - 1] = 0
        strings = text[keep].tobytes()[1:].decode("utf-8", _ERRORS).split("\0")
        return strings if len(strings) == len(self) else [self[i] for i in range(len(self))]
