"""Groups that lie one behind the other, turned so that each has a lane of its own."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .vec import F32, LANES, op, pointer

_i32, _i64 = ir.IntType(32), ir.IntType(64)


def _exchange(builder: Any, a: Any, b: Any, width: int) -> tuple[Any, Any]:
    """Every other run of `width` lanes of `a` changes places with the run of `b` before it."""
    low = [i if i // width % 2 == 0 else LANES + i - width for i in range(LANES)]
    high = [i + width if i // width % 2 == 0 else LANES + i for i in range(LANES)]
    masks = (ir.Constant(ir.VectorType(_i32, LANES), lanes) for lanes in (low, high))
    first, second = (builder.shuffle_vector(a, b, mask) for mask in masks)
    return first, second


@op(types.void, types.int64, types.int64, types.int64, types.int64)
def transpose(builder: Any, source: Any, stride: Any, last: Any, target: Any) -> None:
    """16 float32 of 16 rows `stride` bytes apart to 16 vectors side by side; row `last` stands for those behind it."""
    rows = []
    for i in range(LANES):
        row = builder.select(builder.icmp_signed("<", _i64(i), last), _i64(i), last)
        address = builder.add(source, builder.mul(row, stride))
        rows.append(builder.load(pointer(builder, address, F32.llvm), align=1))
    for width in (8, 4, 2, 1):
        for i in (i for i in range(LANES) if i // width % 2 == 0):
            rows[i], rows[i + width] = _exchange(builder, rows[i], rows[i + width], width)
    for i, row in enumerate(rows):
        address = builder.add(target, _i64(64 * i))
        builder.store(row, pointer(builder, address, F32.llvm), align=1)
