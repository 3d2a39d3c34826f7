"""AMX: tile registers sum 16 rows of activations x 16 rows of weights over 32 (or 16) columns with one instruction.

A packed group of columns is what a tile of the second operand looks like, so nothing is rearranged. Sums of integers
are exact, hence the same as those of the vector kernel; all float work stays in vector registers in its usual order.
"""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from ..vec import I32, LANES, call, pointer
from .avx512_gfni import dot4, field, look_up, pause

__all__ = [
    "begin_dots",
    "dot4",
    "end_dots",
    "enter",
    "field",
    "leave",
    "look_up",
    "pause",
    "read_eight",
    "sum_eight",
]

_i8, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_SUMS, _MORE_SUMS, _ROWS, _MORE_ROWS, _WEIGHTS = (_i8(register) for register in range(5))
_VOID = ir.VoidType()
_PLANE = 64 * LANES


def _configuration(depth: int) -> bytes:
    """Palette 1; per register the bytes of a row and the number of rows, for sums over `depth` chunks."""
    row_bytes = [64, 64, 4 * depth, 4 * depth, 64]
    rows = [16, 16, 16, 16, depth]
    unused = [0] * (16 - len(rows))
    return struct.pack("<BB14x16H16B", 1, 0, *row_bytes, *unused, *rows, *unused)


def enter(builder: Any, depth: int) -> None:
    """Shape this thread's tile registers."""
    data = _configuration(depth)
    kind = ir.ArrayType(_i8, len(data))
    place = cgutils.alloca_once(builder, kind)
    builder.store(ir.Constant(kind, bytearray(data)), place)
    call(builder, "llvm.x86.ldtilecfg", _VOID, builder.bitcast(place, _i8.as_pointer()))


def leave(builder: Any) -> None:
    """Give the tile registers back, so that the system need not save them."""
    call(builder, "llvm.x86.tilerelease", _VOID)


def _load(builder: Any, register: Any, address: Any, stride: Any) -> None:
    call(builder, "llvm.x86.tileloadd64", _VOID, register, pointer(builder, address, _i8), stride)


def _store(builder: Any, register: Any, address: Any) -> None:
    call(builder, "llvm.x86.tilestored64", _VOID, register, pointer(builder, address, _i8), _i64(64))


def begin_dots(builder: Any, chunks: Any, x: Any, stride: Any, place: Any) -> None:
    """Sums of 16 tokens, `stride` bytes apart, over the chunks at an address, in two planes, to memory at `place`."""
    _load(builder, _WEIGHTS, chunks, _i64(64))
    for sums, rows, offset in ((_SUMS, _ROWS, 0), (_MORE_SUMS, _MORE_ROWS, 32)):
        call(builder, "llvm.x86.tilezero", _VOID, sums)
        _load(builder, rows, builder.add(x, _i64(offset)), stride)
        call(builder, "llvm.x86.tdpbsud", _VOID, sums, rows, _WEIGHTS)
    _store(builder, _SUMS, place)
    _store(builder, _MORE_SUMS, builder.add(place, _i64(_PLANE)))


def end_dots(builder: Any, place: Any) -> list[Any]:
    """The sums that `begin_dots` stored, one vector of 16 rows a token."""
    return [_combine(builder, builder.add(place, _i64(64 * t)), _PLANE) for t in range(LANES)]


def sum_eight(builder: Any, chunks: Any, x: Any, place: Any) -> None:
    """Sums of 8 tokens that lie side by side, 64 bytes each: both planes at once, those of a token in turn."""
    _load(builder, _WEIGHTS, chunks, _i64(64))
    call(builder, "llvm.x86.tilezero", _VOID, _SUMS)
    _load(builder, _ROWS, x, _i64(32))
    call(builder, "llvm.x86.tdpbsud", _VOID, _SUMS, _ROWS, _WEIGHTS)
    _store(builder, _SUMS, place)


def read_eight(builder: Any, place: Any) -> list[Any]:
    """The sums that `sum_eight` stored."""
    return [_combine(builder, builder.add(place, _i64(128 * t)), 64) for t in range(8)]


def _combine(builder: Any, place: Any, apart: int) -> Any:
    addresses = place, builder.add(place, _i64(apart))
    upper, lower = (builder.load(pointer(builder, address, I32.llvm), align=64) for address in addresses)
    return builder.add(builder.shl(upper, ir.Constant(I32.llvm, [8] * LANES)), lower)
