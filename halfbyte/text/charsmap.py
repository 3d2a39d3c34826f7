"""`read_charsmap`: SentencePiece's table of characters to replace, proven safe before a library walks it.

Layout: the bytes of a trie (u32), the trie as Darts units (u32 each), then the replacements, each ended by a NUL.
Source: the Darts-clone library, which reads units without looking at bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .stages import CHARSMAP

_LONGEST = 128
"""Bytes of a replacement; the longest of NFKC takes 33."""
_BLOCK = 8  # the label of a byte reaches this many low bits
_IS_VALUE = np.uint32(1 << 31)


def read_charsmap(metadata: Mapping[str, object]) -> bytes:
    """The table's bytes, none where the file has no table. Raises `FormatError`."""
    value = metadata.get(CHARSMAP)
    if value is None:
        return b""
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (len(array) and not -129 < array.min() <= array.max() < 256):
        raise FormatError(f"{CHARSMAP}: wants an array of bytes; fetch or convert the file again")
    raw = array.astype(np.uint8).tobytes()
    problem = charsmap_problem(raw)
    if problem:
        raise FormatError(f"{CHARSMAP}: {problem}; fetch or convert the file again")
    return raw


def charsmap_problem(raw: bytes) -> str | None:
    """What makes a table unfit to be walked, None where it is sound or empty."""
    if not raw:
        return None
    size = int.from_bytes(raw[:4], "little")
    if len(raw) < 4 or size % 4 or not size or 4 + size >= len(raw):
        return "is truncated"
    units = np.frombuffer(raw, "<u4", size // 4, 4)
    replacements = raw[4 + size :]
    if replacements[-1]:
        return "its last replacement has no end"
    if max(map(len, replacements.split(b"\0"))) > _LONGEST:
        return f"holds a replacement of more than {_LONGEST} bytes"
    return _walk_problem(units, len(replacements))


def _walk_problem(units: NDArray[np.uint32], n_bytes: int) -> str | None:
    inner = np.flatnonzero(units < _IS_VALUE)
    shift = (units[inner] & np.uint32(1 << 9)) >> np.uint32(6)
    children = inner.astype(np.uint64) ^ ((units[inner] >> np.uint32(10)).astype(np.uint64) << shift)
    # A child stands where its byte changes the low bits, and the unit of no byte holds the value.
    if len(inner) and ((children | np.uint64((1 << _BLOCK) - 1)) >= len(units)).any():
        return "its trie leads outside"
    values = units[children[(units[inner] >> np.uint32(8)) & np.uint32(1) == 1]] & ~_IS_VALUE
    return "its trie names replacements that are not there" if (values >= n_bytes).any() else None
