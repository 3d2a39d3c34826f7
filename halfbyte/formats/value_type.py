"""`ValueType`: the kinds of metadata values in a GGUF file, `Typed`, a value that says its own, and `Reserved`."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ValueType:
    """One numeric value type: its number in the file and its `struct` code, which NumPy shares."""

    name: str
    id: int
    code: str

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Little-endian NumPy type of an array of these."""
        return np.dtype(f"<{self.code}")

    @property
    def struct(self) -> struct.Struct:
        """Little-endian layout of one of these."""
        return struct.Struct(f"<{self.code}")


STRING_ID = 8
ARRAY_ID = 9

NUMBERS: dict[str, ValueType] = {
    kind.name: kind
    for kind in (
        ValueType("u8", 0, "B"),
        ValueType("i8", 1, "b"),
        ValueType("u16", 2, "H"),
        ValueType("i16", 3, "h"),
        ValueType("u32", 4, "I"),
        ValueType("i32", 5, "i"),
        ValueType("f32", 6, "f"),
        ValueType("bool", 7, "?"),
        ValueType("u64", 10, "Q"),
        ValueType("i64", 11, "q"),
        ValueType("f64", 12, "d"),
    )
}
NUMBERS_BY_ID: dict[int, ValueType] = {kind.id: kind for kind in NUMBERS.values()}
TYPE_NAMES: tuple[str, ...] = (*NUMBERS, "string")


@dataclass(frozen=True)
class Typed:
    """A metadata value with its type spelt out: a name of `TYPE_NAMES`, for an array that of its elements."""

    value: object
    type: str


@dataclass(frozen=True)
class Reserved:
    """Room for an array of `count` numbers of `type`, for `GGUFWriter.fill` when the tensors are there."""

    type: str
    count: int
