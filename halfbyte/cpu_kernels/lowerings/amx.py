"""AMX: tile registers sum 16 tokens x 16 rows over 32 (or 16) columns with one instruction.

A packed group of columns is what a tile of the second operand looks like, so nothing is rearranged. Sums of integers
are exact, hence the same as those of the vector kernel; all float work stays in vector registers in its usual order.
"""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from ..vec import I32, LANES, call, pointer
from .avx512_vnni import dot4, pause

__all__ = ["dot4", "dot_matrix", "enter", "leave", "pause"]

_i8, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_UPPER_SUMS, _LOWER_SUMS = _i8(0), _i8(1)
_BY_DEPTH = {8: (_i8(2), _i8(3), _i8(4)), 4: (_i8(5), _i8(6), _i8(7))}
"""Number of chunks to the registers of upper bytes, of lower bytes and of weights."""


def _configuration() -> bytes:
    """Palette 1; per register the bytes of a row and the number of rows."""
    row_bytes = [64, 64, 32, 32, 64, 16, 16, 64]
    rows = [16, 16, 16, 16, 8, 16, 16, 4]
    pad = [0] * 8
    return struct.pack("<BB14x16H16B", 1, 0, *row_bytes, *pad, *rows, *pad)


def enter(builder: Any) -> None:
    """Shape this thread's tile registers."""
    data = _configuration()
    kind = ir.ArrayType(_i8, len(data))
    place = cgutils.alloca_once(builder, kind)
    builder.store(ir.Constant(kind, bytearray(data)), place)
    call(builder, "llvm.x86.ldtilecfg", ir.VoidType(), builder.bitcast(place, _i8.as_pointer()))


def leave(builder: Any) -> None:
    """Give the tile registers back, so that the system need not save them."""
    call(builder, "llvm.x86.tilerelease", ir.VoidType())


def dot_matrix(builder: Any, depth: int, chunks: Any, x: Any, stride: Any) -> list[Any]:
    """Sums of 16 tokens over the `depth` chunks at an address, one vector of 16 rows a token."""
    upper, lower, weights = _BY_DEPTH[depth]
    void = ir.VoidType()
    places = []
    call(builder, "llvm.x86.tileloadd64", void, weights, pointer(builder, chunks, _i8), _i64(64))
    for target, plane, offset in ((_UPPER_SUMS, upper, 0), (_LOWER_SUMS, lower, 32)):
        with builder.goto_entry_block():  # not numba's helper, which would clear it at every use
            places.append(builder.alloca(ir.ArrayType(I32.llvm, LANES)))
        call(builder, "llvm.x86.tilezero", void, target)
        where = pointer(builder, builder.add(x, _i64(offset)), _i8)
        call(builder, "llvm.x86.tileloadd64", void, plane, where, stride)
        call(builder, "llvm.x86.tdpbsud", void, target, plane, weights)
    for target, place in zip((_UPPER_SUMS, _LOWER_SUMS), places, strict=True):
        call(builder, "llvm.x86.tilestored64", void, target, builder.bitcast(place, _i8.as_pointer()), _i64(64))
    return [_combine(builder, *places, t) for t in range(LANES)]


def _combine(builder: Any, upper: Any, lower: Any, t: int) -> Any:
    high, low = (builder.load(builder.gep(place, [_i32(0), _i32(t)])) for place in (upper, lower))
    return builder.add(builder.shl(high, ir.Constant(I32.llvm, [8] * LANES)), low)
