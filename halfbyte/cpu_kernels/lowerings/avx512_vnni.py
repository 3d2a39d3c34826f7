"""AVX-512 with VNNI: one instruction multiplies 64 bytes and adds them up by fours."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vec import I32, U8, call


def dot4(builder: Any, acc: Any, unsigned: Any, signed: Any, bits: int) -> Any:
    """`acc[i] += sum of unsigned[4i + j] * signed[4i + j]`; the sum of four never saturates."""
    return call(builder, "llvm.x86.avx512.vpdpbusd.512", I32.llvm, acc, unsigned, signed)


def pause(builder: Any) -> None:
    """Tell the core that this is a waiting loop."""
    call(builder, "llvm.x86.sse2.pause", ir.VoidType())


def look_up(builder: Any, entries: list[int], codes: Any) -> Any:
    """Entry `code` of sixteen for each of 64 bytes."""
    table = ir.Constant(U8.llvm, entries * 4)
    return call(builder, "llvm.x86.avx512.pshuf.b.512", U8.llvm, table, codes)
