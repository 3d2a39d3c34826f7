"""AVX-512 of Ice Lake and Zen 4 on: a bit matrix moves and masks a field of every byte with one instruction."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vec import U8, call, splat
from .avx512_vnni import dot4, look_up, pause

__all__ = ["dot4", "field", "look_up", "pause"]

_i8, _i64 = ir.IntType(8), ir.IntType(64)


def field(builder: Any, v: Any, shift: Any, bits: int, to: int) -> Any:
    """`bits` bits at `shift` of each of 64 bytes, moved to bit `to`.

    Row 7 - i of the matrix chooses what becomes bit i; moving all rows by `shift` chooses what lies higher.
    """
    rows = sum(1 << (8 * (7 - to - i) + i) for i in range(bits))
    matrix = builder.bitcast(splat(builder, builder.shl(_i64(rows), shift), 8), U8.llvm)
    return call(builder, "llvm.x86.vgf2p8affineqb.512", U8.llvm, v, matrix, _i8(0))
