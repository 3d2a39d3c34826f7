"""AVX2: bytes are multiplied in pairs with sums of 16 bits that saturate, so wide bytes go in two parts."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vec import call
from .avx512_vnni import pause

__all__ = ["dot4", "pause"]

_i32 = ir.IntType(32)
_BYTES, _SHORTS, _INTS = (ir.VectorType(ir.IntType(n), 256 // n) for n in (8, 16, 32))


def dot4(builder: Any, acc: Any, unsigned: Any, signed: Any, bits: int) -> Any:
    """`acc[i] += sum of unsigned[4i + j] * signed[4i + j]`.

    Two products of 7 bits by 8 bits stay below 2^15 (2 * 127 * 127); of a full byte the top bit is summed apart
    (2 * 128 * 127 is below it as well).
    """
    sums = [_dot_half(builder, _half(builder, unsigned, h), _half(builder, signed, h), bits) for h in (0, 1)]
    both = ir.Constant(ir.VectorType(_i32, 16), list(range(16)))
    return builder.add(acc, builder.shuffle_vector(sums[0], sums[1], both))


def look_up(builder: Any, entries: list[int], codes: Any) -> Any:
    """Entry `code` of sixteen for each of 64 bytes."""
    table = ir.Constant(_BYTES, entries * 2)
    parts = [call(builder, "llvm.x86.avx2.pshuf.b", _BYTES, table, _half(builder, codes, h)) for h in (0, 1)]
    return builder.shuffle_vector(*parts, ir.Constant(ir.VectorType(_i32, 64), list(range(64))))


def _half(builder: Any, v: Any, half: int) -> Any:
    return builder.shuffle_vector(v, v, ir.Constant(ir.VectorType(_i32, 32), [32 * half + i for i in range(32)]))


def _dot_half(builder: Any, u: Any, s: Any, bits: int) -> Any:
    if bits <= 7:
        return _by_fours(builder, u, s)
    top = ir.Constant(_BYTES, [128] * 32)
    rest = ir.Constant(_BYTES, [127] * 32)
    return builder.add(
        _by_fours(builder, builder.and_(u, rest), s),
        _by_fours(builder, builder.and_(u, top), s),
    )


def _by_fours(builder: Any, u: Any, s: Any) -> Any:
    pairs = call(builder, "llvm.x86.avx2.pmadd.ub.sw", _SHORTS, u, s)
    return call(builder, "llvm.x86.avx2.pmadd.wd", _INTS, pairs, ir.Constant(_SHORTS, [1] * 16))
