"""ARM with the dot product extension: signed by signed, so full bytes are moved into the signed range."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vec import call

_i32 = ir.IntType(32)
_BYTES, _INTS = ir.VectorType(ir.IntType(8), 16), ir.VectorType(_i32, 4)


def dot4(builder: Any, acc: Any, unsigned: Any, signed: Any, bits: int) -> Any:
    """`acc[i] += sum of unsigned[4i + j] * signed[4i + j]`.

    A full byte u is (u - 128) + 64 + 64, each part within a signed byte.
    """
    quarters = []
    for q in range(4):
        u, s = (_quarter(builder, v, q, 16) for v in (unsigned, signed))
        part = _quarter(builder, acc, q, 4)
        if bits > 7:
            u = builder.xor(u, ir.Constant(_BYTES, [128] * 16))
            half = ir.Constant(_BYTES, [64] * 16)
            part = _sdot(builder, _sdot(builder, part, half, s), half, s)
        quarters.append(_sdot(builder, part, u, s))
    return _join(builder, quarters)


def look_up(builder: Any, entries: list[int], codes: Any) -> Any:
    """Entry `code` of sixteen for each of 64 bytes."""
    table, name = ir.Constant(_BYTES, entries), "llvm.aarch64.neon.tbl1.v16i8"
    return _join(builder, [call(builder, name, _BYTES, table, _quarter(builder, codes, q, 16)) for q in range(4)])


def pause(builder: Any) -> None:
    """Tell the core that this is a waiting loop (the `yield` hint)."""
    call(builder, "llvm.aarch64.hint", ir.VoidType(), _i32(1))


def _sdot(builder: Any, acc: Any, a: Any, b: Any) -> Any:
    return call(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", _INTS, acc, a, b)


def _quarter(builder: Any, v: Any, q: int, lanes: int) -> Any:
    return builder.shuffle_vector(v, v, ir.Constant(ir.VectorType(_i32, lanes), [lanes * q + i for i in range(lanes)]))


def _join(builder: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        lanes = ir.Constant(ir.VectorType(_i32, 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
        parts = [builder.shuffle_vector(parts[i], parts[i + 1], lanes) for i in range(0, len(parts), 2)]
    return parts[0]
