"""Vocabulary of packed weights: bit fields of a plane to `chunks`, byte vectors of 16 rows x 4 columns each.

Chunks are in column order and unsigned. A plane with fields of b bits holds 8 / b columns in a byte: fields of one
group of 32 columns lie at the same place in eight vectors, or (`nibbles`, `bits`) share fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from .lowerings import active
from .vec import U8, op, pointer

_i64 = ir.IntType(64)
CHUNKS = types.UniTuple(U8, 8)
"""One group of 32 columns."""


def vector_of_bytes(builder: Any, address: Any, i: int = 0) -> Any:
    """The i-th 64 bytes at an address."""
    return builder.load(pointer(builder, builder.add(address, _i64(64 * i)), U8.llvm), align=1)


def chunk_list(builder: Any, chunks: Any) -> list[Any]:
    """The vectors of a tuple of chunks."""
    return [builder.extract_value(chunks, i) for i in range(chunks.type.count)]


def _group(*takes: Any) -> Callable[[Callable[..., list[Any]]], Any]:
    """An intrinsic that gives the eight chunks of a group."""

    def wrap(emit: Callable[..., list[Any]]) -> Any:
        def packed(builder: Any, *args: Any) -> Any:
            result = ir.Constant(ir.ArrayType(U8.llvm, 8), ir.Undefined)
            for i, chunk in enumerate(emit(builder, *args)):
                result = builder.insert_value(result, chunk, i)
            return result

        packed.__name__, packed.__doc__ = emit.__name__, emit.__doc__
        return op(CHUNKS, *takes)(packed)

    return wrap


def _field(builder: Any, v: Any, shift: Any, bits: int, to: int = 0) -> Any:
    return active.field(builder, v, shift, bits, to)


@_group(types.int64)
def whole_bytes(builder: Any, address: Any) -> list[Any]:
    """A byte a column, from 512 bytes."""
    return [vector_of_bytes(builder, address, k) for k in range(8)]


@_group(types.int64)
def nibbles(builder: Any, address: Any) -> list[Any]:
    """4 bits a column, from 256 bytes: low halves are the first 16 columns, high halves the others."""
    packed = [vector_of_bytes(builder, address, k) for k in range(4)]
    return [_field(builder, v, _i64(shift), 4) for shift in (0, 4) for v in packed]


@_group(types.int64)
def bits(builder: Any, address: Any) -> list[Any]:
    """1 bit a column, from 64 bytes: bit k belongs to chunk k."""
    plane = vector_of_bytes(builder, address)
    return [_field(builder, plane, _i64(k), 1) for k in range(8)]


@_group(CHUNKS, types.int64)
def add_sixteens(builder: Any, chunks: Any, address: Any) -> list[Any]:
    """Add 16 to the bytes of chunk k where bit k of the 64 bytes at `address` is set."""
    plane = vector_of_bytes(builder, address)
    return [
        builder.or_(chunk, _field(builder, plane, _i64(k), 1, 4)) for k, chunk in enumerate(chunk_list(builder, chunks))
    ]


def _take(width: int) -> Any:
    def emit(builder: Any, address: Any, shift: Any) -> list[Any]:
        return [_field(builder, vector_of_bytes(builder, address, k), shift, width) for k in range(8)]

    emit.__name__ = f"take_{width}_bits"
    emit.__doc__ = f"{width} bits a column, at `shift` in the bytes of 512 bytes."
    return _group(types.int64, types.int64)(emit)


take_2_bits, take_4_bits = _take(2), _take(4)


def _add(width: int, to: int) -> Any:
    def emit(builder: Any, chunks: Any, address: Any, shift: Any) -> list[Any]:
        fields = [_field(builder, vector_of_bytes(builder, address, k), shift, width, to) for k in range(8)]
        return [builder.or_(*pair) for pair in zip(chunk_list(builder, chunks), fields, strict=True)]

    emit.__name__ = f"add_{width}_bits_at_{to}"
    emit.__doc__ = f"Put {width} bits a column, at `shift` in the bytes of 512 bytes, above the chunks' {to} bits."
    return _group(CHUNKS, types.int64, types.int64)(emit)


add_1_bit_at_2, add_1_bit_at_4, add_2_bits_at_4 = _add(1, 2), _add(1, 4), _add(2, 4)


def table(name: str, values: tuple[int, ...]) -> Any:
    """A word that exchanges every code of a group, below 16, for a byte of a table."""
    entries = [*values, *[0] * (16 - len(values))]

    def emit(builder: Any, chunks: Any) -> list[Any]:
        return [active.look_up(builder, entries, chunk) for chunk in chunk_list(builder, chunks)]

    emit.__name__, emit.__doc__ = name, f"Byte k of {entries} for code k."
    return _group(CHUNKS)(emit)
