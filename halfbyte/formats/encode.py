"""`encode_pair`: one metadata key and value as the bytes of a GGUF file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

import numpy as np

from ..errors import ConfigError, nearest
from .metadata import MAX_KEY_BYTES
from .value_type import ARRAY_ID, NUMBERS, STRING_ID, TYPE_NAMES, Reserved, Typed, ValueType

_ONE_INTEGER = ("u32", "i32", "i64", "u64")
_MANY_INTEGERS = ("i32", "u32", "i64", "u64")
"""llama.cpp reads single counts as u32 and lists of them as i32 or u32; both start with what it expects."""


def encode_text(text: str, what: str) -> bytes:
    """Length and bytes; surrogates as `StringArray` makes them become the bytes they were."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ConfigError(f"{what} holds a lone surrogate, which UTF-8 cannot express", key=what) from None
    return struct.pack("<Q", len(raw)) + raw


def encode_name(name: str, what: str, limit: int) -> bytes:
    """Length and bytes of a name, which must be valid UTF-8 of 1 to `limit` bytes."""
    try:
        length = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise ConfigError(f"{what} {name!r} cannot be expressed in UTF-8", key=name) from None
    if not 0 < length <= limit:
        raise ConfigError(f"{what} {name[:limit]!r} has {length} bytes, not 1 to {limit}", key=name)
    return encode_text(name, what)


def encode_pair(key: str, value: object) -> bytes:
    """Key, type and value. Types that are not given by `Typed` or a NumPy dtype are inferred:

    an int is the first of u32 i32 i64 u64 that holds it (of i32 u32 i64 u64 for all ints of a list), a float f32.
    A `Reserved` one is zeros so far.
    """
    head = encode_name(key, "metadata key", MAX_KEY_BYTES)
    if isinstance(value, Reserved):
        value = Typed(np.zeros(value.count, NUMBERS[value.type].dtype), value.type)
    plain, kind = (value.value, value.type) if isinstance(value, Typed) else (value, None)
    if kind is not None and kind not in TYPE_NAMES:
        hint = nearest(kind, TYPE_NAMES) or f"; known: {', '.join(TYPE_NAMES)}"
        raise ConfigError(f"{key}: unknown value type {kind!r}{hint}", key=key)
    if isinstance(plain, np.ndarray) and plain.ndim != 1:
        raise ConfigError(f"{key}: an array must have one dimension, not {plain.ndim}", key=key)
    if isinstance(plain, np.ndarray | Sequence) and not isinstance(plain, str | bytes):
        kind = kind or _infer(key, plain, _MANY_INTEGERS)
        body = _encode_items(key, plain, kind)
        return head + struct.pack("<IIQ", ARRAY_ID, _type_id(kind), len(plain)) + body
    kind = kind or _infer(key, [plain], _ONE_INTEGER)
    return head + struct.pack("<I", _type_id(kind)) + _encode_items(key, [plain], kind)


def encode_numbers(key: str, values: Sequence[object] | np.ndarray, room: Reserved) -> bytes:
    """What stands in the place of a reserved array. Raises `ConfigError` where the values do not fit it."""
    if len(values) != room.count:
        raise ConfigError(f"{key}: {len(values)} values are given for {room.count} that were reserved", key=key)
    return _encode_items(key, values, room.type)


def _type_id(kind: str) -> int:
    return STRING_ID if kind == "string" else NUMBERS[kind].id


def _infer(key: str, items: Sequence[object] | np.ndarray, integers: tuple[str, ...]) -> str:
    if len(items) == 0 and not isinstance(items, np.ndarray):
        raise ConfigError(f"{key}: the type of an empty list is unknown; write Typed([], 'string')", key=key)
    dtypes = {item.dtype for item in (items, *items) if isinstance(item, np.ndarray | np.generic)}
    for kind in NUMBERS.values() if len(dtypes) == 1 else ():
        if dtypes == {kind.dtype}:
            return kind.name
    kinds = {type(item.item() if isinstance(item, np.generic) else item) for item in items}
    if kinds == {bool}:
        return "bool"
    if kinds == {str}:
        return "string"
    if kinds == {int}:
        numbers = cast("Sequence[int]", items)
        low, high = int(min(numbers)), int(max(numbers))
        for name in integers:
            limits = np.iinfo(NUMBERS[name].code)
            if limits.min <= low and high <= limits.max:
                return name
        raise ConfigError(f"{key}: {low} to {high} fits no 64-bit integer type", key=key)
    if kinds in ({float}, {int, float}):
        return "f32"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ConfigError(f"{key}: a value of {names} has no GGUF type; known: {', '.join(TYPE_NAMES)}", key=key)


def _encode_items(key: str, items: Sequence[object] | np.ndarray, kind: str) -> bytes:
    if kind == "string":
        wrong = next((item for item in items if not isinstance(item, str)), None)
        if wrong is not None:
            raise ConfigError(f"{key}: {wrong!r} is not a string", key=key)
        return b"".join(encode_text(cast("str", item), key) for item in items)
    number = NUMBERS[kind]
    if isinstance(items, np.ndarray) and items.dtype == number.dtype:
        return items.tobytes()
    plain = items.tolist() if isinstance(items, np.ndarray) else list(items)
    return _pack(key, [item.item() if isinstance(item, np.generic) else item for item in plain], number)


def _pack(key: str, items: list[object], number: ValueType) -> bytes:
    """Numbers that keep their meaning: no bool as an integer, nothing out of range, no fraction lost."""
    accepted = {"b": (bool,), "f": (int, float)}.get(number.dtype.kind, (int,))
    wrong = next((item for item in items if type(item) not in accepted), None)
    if wrong is not None:
        raise ConfigError(f"{key}: {wrong!r} is not a {number.name}", key=key)
    try:
        return struct.pack(f"<{len(items)}{number.code}", *items)
    except (struct.error, OverflowError):
        raise ConfigError(f"{key}: a value is out of the range of {number.name}", key=key) from None
