"""`Metadata`: the keys and values at the head of a GGUF file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cursor import CUT_SHORT, Cursor
from .string_array import StringArray
from .text_starts import HEADER, find_text_starts
from .value_type import ARRAY_ID, NUMBERS_BY_ID, STRING_ID, ValueType

MAX_KEYS = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1
MAX_ARRAY_BYTES = 1 << 30
MAX_STRINGS = 1 << 24
"""An order of magnitude above the largest vocabulary; keeps the walk over a hostile array short."""

_SMALLEST_PAIR = HEADER + 1 + 4 + 1


@dataclass(frozen=True)
class Metadata:
    """`values[key]` and `types[key]`, the name of its value type; for an array that of its elements."""

    values: dict[str, object]
    types: dict[str, str]


def read_metadata(cursor: Cursor, count: int) -> Metadata:
    """Read `count` pairs. Raises `FormatError` for anything that is cut short, doubled or not a value type."""
    if count > MAX_KEYS or count * _SMALLEST_PAIR > cursor.left:
        raise cursor.error(f"the header promises {count} metadata keys, more than fit in it: {CUT_SHORT}")
    found = Metadata({}, {})
    for index in range(count):
        at = cursor.position
        key = cursor.name(f"metadata key {index}", MAX_KEY_BYTES)
        if key in found.values:
            raise cursor.error(f"metadata key {key!r} occurs twice: the file is damaged", at)
        found.values[key], found.types[key] = _read_value(cursor, key)
    return found


def _read_value(cursor: Cursor, key: str) -> tuple[object, str]:
    what = f"metadata key {key!r}"
    at = cursor.position
    kind = cursor.u32(f"the type of {what}")
    if kind == STRING_ID:
        return cursor.raw_text(what).decode("utf-8", "surrogateescape"), "string"
    if kind == ARRAY_ID:
        return _read_array(cursor, what)
    number = NUMBERS_BY_ID.get(kind)
    if number is None:
        raise cursor.error(f"{what} has value type {kind}, which does not exist: the file is damaged", at)
    if number.name == "bool":
        return cursor.number(NUMBERS_BY_ID[0].struct, what) != 0, "bool"
    return cursor.number(number.struct, what), number.name


def _read_array(cursor: Cursor, what: str) -> tuple[object, str]:
    at = cursor.position
    kind = cursor.u32(f"the element type of {what}")
    count = cursor.u64(f"the length of {what}")
    if kind == STRING_ID:
        if count > MAX_STRINGS or count * HEADER > cursor.left:
            raise cursor.error(f"{what} promises {count} strings, more than fit in the file: {CUT_SHORT}", at)
        return StringArray(cursor.data, find_text_starts(cursor, count, what)), "string"
    number = NUMBERS_BY_ID.get(kind)
    if number is None:
        reason = "arrays cannot be nested" if kind == ARRAY_ID else f"value type {kind} does not exist"
        raise cursor.error(f"{what} cannot be read: {reason}; the file is damaged", at)
    return _read_numbers(cursor, number, count, what), number.name


def _read_numbers(cursor: Cursor, number: ValueType, count: int, what: str) -> NDArray[np.generic]:
    """A read-only copy: values in the file are rarely aligned, and compiled code wants them to be."""
    n_bytes = count * number.dtype.itemsize
    if n_bytes > MAX_ARRAY_BYTES:
        raise cursor.error(f"{what} promises {count} values of {number.name}, at most 1 GiB is allowed: it is damaged")
    start = cursor.skip(n_bytes, what)
    raw = cursor.data[start : start + n_bytes]
    # A C bool that is neither 0 nor 1 would be undefined behaviour in whoever computes with it.
    values = raw != 0 if number.name == "bool" else raw.copy().view(number.dtype)
    values.flags.writeable = False
    return values
