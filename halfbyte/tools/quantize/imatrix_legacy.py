"""The older form of an importance matrix (`.dat`): a list of names, calls and values.

Values are mean squares times calls, so that sum and count are such as the newer form has, with calls in place of
tokens. Source: the reader and writer of llama.cpp.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ...errors import ConfigError
from ...formats.cursor import CUT_SHORT, Cursor
from .imatrix import ImportanceMatrix
from .imatrix_entry import Entry, problem_of

_I32 = struct.Struct("<i")
_LONGEST_NAME = 1 << 12


def read_legacy(path: Path) -> ImportanceMatrix:
    """Read a whole file; raises `FormatError` with the place of what is cut short or makes no sense."""
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", key="path") from error
    cursor = Cursor(path, data)
    entries: dict[str, Entry] = {}
    for index in range(_count(cursor, "the number of entries", 1)):
        at = cursor.position
        name = _text(cursor, f"the name of entry {index}", 1)
        if name in entries:
            raise cursor.error(f"entry {name!r} occurs twice: the importance matrix is damaged", at)
        entries[name] = _entry(cursor, name)
    chunk_count, dataset = 0, ""
    if cursor.left:
        chunk_count = _count(cursor, "the number of chunks", 0)
    if cursor.left:
        dataset = _text(cursor, "the name of the text", 0)
    return ImportanceMatrix(entries, (dataset,) if dataset else (), chunk_count, 0, path)


def _entry(cursor: Cursor, name: str) -> Entry:
    at = cursor.position
    calls = _count(cursor, f"the calls of {name!r}", 0)
    n_values = _count(cursor, f"the number of values of {name!r}", 1)
    start = cursor.skip(4 * n_values, f"the values of {name!r}")
    sums = cursor.data[start : start + 4 * n_values].copy().view("<f4").astype(np.float32, copy=False)
    entry = Entry(sums[None], np.array([calls], np.float32))
    problem = problem_of(entry)
    if problem:
        raise cursor.error(f"{name!r} {problem}: the importance matrix is damaged", at)
    return entry


def _count(cursor: Cursor, what: str, low: int) -> int:
    at = cursor.position
    value = int(cursor.number(_I32, what))
    if value < low:
        raise cursor.error(f"{what} is {value}: this is no importance matrix, or it is damaged", at)
    return value


def _text(cursor: Cursor, what: str, low: int) -> str:
    at = cursor.position
    length = _count(cursor, f"the length of {what}", low)
    if length > _LONGEST_NAME:
        raise cursor.error(f"{what} is {length} bytes long: this is no importance matrix, or {CUT_SHORT}", at)
    start = cursor.skip(length, what)
    return cursor.data[start : start + length].tobytes().decode("utf-8", "surrogateescape")
