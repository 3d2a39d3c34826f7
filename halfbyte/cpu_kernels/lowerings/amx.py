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
from .avx512_gfni import dot4, field, look_up, pause

__all__ = ["begin_dots", "dot4", "end_dots", "enter", "field", "leave", "look_up", "pause"]

_i8, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_UPPER_SUMS, _LOWER_SUMS = _i8(0), _i8(1)
_BY_DEPTH = {8: (_i8(2), _i8(3), _i8(4)), 4: (_i8(5), _i8(6), _i8(7))}
"""Number of chunks to the registers of upper bytes, of lower bytes and of weights."""
_PLANE = 64 * LANES


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


def begin_dots(builder: Any, depth: int, chunks: Any, x: Any, stride: Any, place: Any) -> None:
    """Sums of 16 tokens over the `depth` chunks at an address, in two planes, to memory at `place`."""
    upper, lower, weights = _BY_DEPTH[depth]
    void = ir.VoidType()
    call(builder, "llvm.x86.tileloadd64", void, weights, pointer(builder, chunks, _i8), _i64(64))
    for sums, plane, offset in ((_UPPER_SUMS, upper, 0), (_LOWER_SUMS, lower, 32)):
        call(builder, "llvm.x86.tilezero", void, sums)
        where = pointer(builder, builder.add(x, _i64(offset)), _i8)
        call(builder, "llvm.x86.tileloadd64", void, plane, where, stride)
        call(builder, "llvm.x86.tdpbsud", void, sums, plane, weights)
    for sums, offset in ((_UPPER_SUMS, 0), (_LOWER_SUMS, _PLANE)):
        where = pointer(builder, builder.add(place, _i64(offset)), _i8)
        call(builder, "llvm.x86.tilestored64", void, sums, where, _i64(64))


def end_dots(builder: Any, place: Any) -> list[Any]:
    """The sums that `begin_dots` stored, one vector of 16 rows a token."""
    return [_combine(builder, place, 64 * t) for t in range(LANES)]


def _combine(builder: Any, place: Any, offset: int) -> Any:
    addresses = (builder.add(place, _i64(offset + plane)) for plane in (0, _PLANE))
    high, low = (builder.load(pointer(builder, address, I32.llvm), align=64) for address in addresses)
    return builder.add(builder.shl(high, ir.Constant(I32.llvm, [8] * LANES)), low)
