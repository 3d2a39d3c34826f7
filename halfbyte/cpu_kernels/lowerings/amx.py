"""AMX: tile registers sum 16 tokens x 16 rows over 32 (or 16) columns with one instruction.

A packed group of columns is what a tile of the second operand looks like, so nothing is rearranged. Sums of integers
are exact, hence the same as those of the vector kernel; all float work stays in vector registers in its usual order.
"""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from ..vec import I32, LANES, U8, call, pointer
from .avx512_vnni import dot4, pause

__all__ = ["dot4", "dot_matrix", "enter", "leave", "pause"]

_i8, _i32, _i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_SUMS = _i8(0)
_BY_DEPTH = {8: (_i8(1), _i8(2)), 4: (_i8(3), _i8(4))}
"""Number of chunks to the registers of tokens and of weights."""


def _configuration() -> bytes:
    """Palette 1; per register the bytes of a row and the number of rows."""
    row_bytes = [64, 32, 64, 16, 64]
    rows = [16, 16, 8, 16, 4]
    pad = [0] * (16 - len(rows))
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


def dot_matrix(builder: Any, chunks: list[Any], x: Any, stride: Any) -> list[Any]:
    """Sums of 16 tokens over the columns of `chunks`, one vector of 16 rows a token."""
    tokens, weights = _BY_DEPTH[len(chunks)]
    packed = cgutils.alloca_once(builder, ir.ArrayType(U8.llvm, 8))
    sums = cgutils.alloca_once(builder, ir.ArrayType(I32.llvm, LANES))
    for i, chunk in enumerate(chunks):
        builder.store(chunk, builder.gep(packed, [_i32(0), _i32(i)]))
    void, width = ir.VoidType(), _i64(64)
    call(builder, "llvm.x86.tilezero", void, _SUMS)
    call(builder, "llvm.x86.tileloadd64", void, weights, builder.bitcast(packed, _i8.as_pointer()), width)
    call(builder, "llvm.x86.tileloadd64", void, tokens, pointer(builder, x, _i8), stride)
    call(builder, "llvm.x86.tdpbsud", void, _SUMS, tokens, weights)
    call(builder, "llvm.x86.tilestored64", void, _SUMS, builder.bitcast(sums, _i8.as_pointer()), width)
    return [builder.load(builder.gep(sums, [_i32(0), _i32(t)])) for t in range(LANES)]
