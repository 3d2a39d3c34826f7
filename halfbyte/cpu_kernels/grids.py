"""Vocabulary of attention: a grid is a tile of rows x columns, row after row; its columns are given by another tile.

The columns of scores are pages, 16 keys each; those of results are vectors of 16 channels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .lowerings import active
from .vec import F32, LANES, TILE, call, pointer, splat, tile_op

_i8, _i32, _i64, _f16, _f32 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.HalfType(), ir.FloatType()


def at(builder: Any, address: Any, offset: int) -> Any:
    """The address `offset` bytes behind another."""
    return builder.add(address, _i64(offset)) if offset else address


def _load(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(pointer(builder, address, kind), align=1)


def load_halves(builder: Any, address: Any) -> Any:
    """16 halves, widened."""
    return active.from_half(builder, _load(builder, address, ir.VectorType(_f16, LANES)))


def load_floats(builder: Any, address: Any) -> Any:
    """16 floats."""
    return _load(builder, address, F32.llvm)


def load_bytes(builder: Any, address: Any) -> Any:
    """16 bytes, as they are."""
    return _load(builder, address, ir.VectorType(_i8, LANES))


def load_same(builder: Any, address: Any) -> Any:
    """A float in all lanes."""
    return splat(builder, _load(builder, address, _f32), LANES)


@tile_op(F32, TILE, TILE, types.int64)
def add_products(builder: Any, acc: list[Any], columns: list[Any], xs: Any) -> list[Any]:
    """`acc[row, column] += columns[column] * xs[row]`; each row's own float, `xs`, lie side by side."""
    rows = len(acc) // len(columns)
    same = [load_same(builder, at(builder, xs, 4 * row)) for row in range(rows)]
    return _products(builder, acc, columns, same)


@tile_op(F32, TILE, TILE, types.int64, types.int64)
def add_weighted(builder: Any, acc: list[Any], columns: list[Any], xs: Any, stride: Any) -> list[Any]:
    """Like `add_products`, with the rows' floats `stride` bytes apart."""
    rows = len(acc) // len(columns)
    same = [load_same(builder, builder.add(xs, builder.mul(stride, _i64(row)))) for row in range(rows)]
    return _products(builder, acc, columns, same)


def _products(builder: Any, acc: list[Any], columns: list[Any], xs: list[Any]) -> list[Any]:
    pairs = [(column, x) for x in xs for column in columns]
    return [call(builder, "llvm.fma.v16f32", F32.llvm, *pair, a) for pair, a in zip(pairs, acc, strict=True)]


def _places(builder: Any, acc: list[Any], columns: list[Any], address: Any, stride: Any) -> list[Any]:
    rows = len(acc) // len(columns)
    begins = [builder.add(address, builder.mul(stride, _i64(row))) for row in range(rows)]
    return [pointer(builder, at(builder, begin, 64 * i), F32.llvm) for begin in begins for i in range(len(columns))]


@tile_op(F32, TILE, TILE, types.int64, types.int64, types.int64)
def load_shrunk(
    builder: Any, like: list[Any], columns: list[Any], address: Any, stride: Any, factors: Any
) -> list[Any]:
    """A grid whose rows lie `stride` bytes apart, each in one piece and multiplied by its own float of `factors`."""
    rows = len(like) // len(columns)
    same = [load_same(builder, at(builder, factors, 4 * row)) for row in range(rows)]
    places = _places(builder, like, columns, address, stride)
    loaded = [builder.load(place, align=1) for place in places]
    return [builder.fmul(vector, same[i // len(columns)]) for i, vector in enumerate(loaded)]


@tile_op(F32, TILE, types.int64)
def load_row(builder: Any, like: list[Any], address: Any) -> list[Any]:
    """As many vectors in a row as `like` is long."""
    return [_load(builder, at(builder, address, 64 * i), F32.llvm) for i in range(len(like))]


@tile_op(types.void, TILE, TILE, types.int64, types.int64)
def store_grid(builder: Any, acc: list[Any], columns: list[Any], address: Any, stride: Any) -> None:
    """Store a grid, its rows `stride` bytes apart."""
    for vector, place in zip(acc, _places(builder, acc, columns, address, stride), strict=True):
        builder.store(vector, place, align=1)


@tile_op(types.int64, TILE, types.int64, types.int64, types.int64)
def addresses(builder: Any, like: list[Any], noted: Any, base: Any, n_bytes: Any) -> list[Any]:
    """`base + n_bytes * i` for as many noted numbers i, int64 in a row, as `like` is long."""
    numbers = (_load(builder, at(builder, noted, 8 * i), _i64) for i in range(len(like)))
    return [builder.add(base, builder.mul(number, n_bytes)) for number in numbers]


@tile_op(types.void, TILE, types.int64)
def prefetch_each(builder: Any, addresses: list[Any], offset: Any) -> None:
    """Ask for the cache line that lies `offset` behind each of some addresses."""
    for address in addresses:
        _prefetch(builder, builder.add(address, offset))


@tile_op(types.void, TILE, types.int64, types.int64)
def prefetch_lines(builder: Any, like: list[Any], address: Any, n_bytes: Any) -> None:
    """Ask for the lines of as many vectors in a row as `like` is long, `n_bytes` (a constant) each."""
    for line in range(-(-len(like) * n_bytes.constant // 64)):
        _prefetch(builder, at(builder, address, 64 * line))


def _prefetch(builder: Any, address: Any) -> None:
    where = pointer(builder, address, _i8)
    call(builder, "llvm.prefetch.p0", ir.VoidType(), where, _i32(0), _i32(2), _i32(1))
