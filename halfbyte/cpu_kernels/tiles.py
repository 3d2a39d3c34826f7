"""Vocabulary of the matrix kernels: tiles of one vector a token, and their products with chunks of weights.

`chunks` are byte vectors in column order as `fields.py` makes them. `x` is the address of the first token's
activations, 64 bytes a group of 32 columns: the upper bytes, then the lower ones. The next token's lie `stride` bytes
further.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .fields import CHUNKS, chunk_list, vector_of_bytes
from .lowerings import active
from .vec import ANY, F32, I32, LANES, TILE, U8, call, op, pointer, splat, tile_op

_i32, _i64, _f32 = ir.IntType(32), ir.IntType(64), ir.FloatType()


def _at(builder: Any, address: Any, stride: Any, i: int) -> Any:
    return builder.add(address, builder.mul(stride, _i64(i)))


@tile_op(types.void, TILE, types.int64, types.int64)
def prefetch(builder: Any, shape: list[Any], address: Any, n_bytes: Any) -> None:
    """Ask for `n_bytes` (a constant) that lie `AHEAD` further on, where a tile of few tokens waits for memory alone."""
    if len(shape) > 2:
        return
    for line in range(-(-n_bytes.constant // 64)):
        where = pointer(builder, builder.add(address, _i64(AHEAD + 64 * line)), ir.IntType(8))
        call(builder, "llvm.prefetch.p0", ir.VoidType(), where, _i32(0), _i32(2), _i32(1))


@tile_op(types.void, TILE, types.int64, types.int64)
def prefetch_rows(builder: Any, shape: list[Any], address: Any, stride: Any) -> None:
    """Ask for the cache line of each token that a tile's result will be written to, `stride` bytes apart."""
    for t in range(len(shape)):
        where = pointer(builder, _at(builder, address, stride, t), ir.IntType(8))
        call(builder, "llvm.prefetch.p0", ir.VoidType(), where, _i32(1), _i32(3), _i32(1))


AHEAD = 4096
"""How far ahead: about what a core reads in the time memory takes to answer."""


@tile_op(F32, TILE)
def zeros(builder: Any, shape: list[Any]) -> list[Any]:
    """A tile of zeros, as long as the tuple `shape`."""
    return [ir.Constant(F32.llvm, None)] * len(shape)


def _sums(builder: Any, chunks: list[Any], x: Any, bits: int) -> Any:
    """Sums of one token: its two planes of activations lie 32 bytes apart, the first counts 256 times the second."""
    planes = []
    for plane in (0, 32):
        sums = ir.Constant(I32.llvm, None)
        for k, chunk in enumerate(chunks):
            four = builder.load(pointer(builder, builder.add(x, _i64(plane + 4 * k)), _i32), align=1)
            same = builder.bitcast(splat(builder, four, LANES), U8.llvm)
            sums = active.dot4(builder, sums, chunk, same, bits)
        planes.append(sums)
    return builder.add(builder.shl(planes[0], ir.Constant(I32.llvm, [8] * LANES)), planes[1])


def _dot(bits: int) -> Any:
    def emit(builder: Any, like: list[Any], chunks: Any, x: Any, stride: Any) -> list[Any]:
        # Token by token: the columns are constant offsets from one address register.
        vectors = chunk_list(builder, chunks)
        return [_sums(builder, vectors, _at(builder, x, stride, t), bits) for t in range(len(like))]

    emit.__name__ = f"dot_u{bits}"
    emit.__doc__ = f"Sums of chunk * activation over the chunks' columns; chunk bytes are below {1 << bits}."
    return tile_op(I32, TILE, ANY, types.int64, types.int64)(emit)


dot_small = _dot(7)
dot_wide = _dot(8)


def _ask(depth: int) -> Any:
    def emit(builder: Any, chunks: Any, x: Any, stride: Any, place: Any) -> None:
        if active.begin_dots is not None:
            active.begin_dots(builder, chunks, x, stride, place)

    emit.__name__ = f"ask_{depth}"
    emit.__doc__ = f"Let matrix registers, where there are any, sum {depth} chunks at an address into 2 KiB at `place`."
    return op(types.void, *[types.int64] * 4)(emit)


def _answer(depth: int, bits: int) -> Any:
    def emit(builder: Any, like: list[Any], chunks: Any, x: Any, stride: Any, place: Any) -> list[Any]:
        if active.end_dots is not None:
            return active.end_dots(builder, place)
        vectors = [vector_of_bytes(builder, chunks, k) for k in range(depth)]
        return [_sums(builder, vectors, _at(builder, x, stride, t), bits) for t in range(len(like))]

    emit.__name__ = f"answer_{depth}_u{bits}"
    emit.__doc__ = f"The sums that `ask_{depth}` was told of, as `dot_u{bits}` gives them; the tile is a matrix tile."
    return tile_op(I32, TILE, *[types.int64] * 4)(emit)


ask_whole, ask_half = _ask(8), _ask(4)
answer_whole_small, answer_whole_wide = _answer(8, 7), _answer(8, 8)
answer_half_small, answer_half_wide = _answer(4, 7), _answer(4, 8)


@op(types.void, *[types.int64] * 3)
def sum_eight(builder: Any, chunks: Any, x: Any, place: Any) -> None:
    """Let matrix registers sum the chunks at an address for eight tokens side by side into 1 KiB at `place`."""
    assert active.sum_eight is not None
    active.sum_eight(builder, chunks, x, place)


@tile_op(I32, TILE, types.int64)
def read_eight(builder: Any, like: list[Any], place: Any) -> list[Any]:
    """Those sums."""
    assert active.read_eight is not None
    return active.read_eight(builder, place)


@op(types.void, types.int64, CHUNKS)
def store_chunks(builder: Any, address: Any, chunks: Any) -> None:
    """Store eight chunks, 512 bytes."""
    for k, chunk in enumerate(chunk_list(builder, chunks)):
        builder.store(chunk, pointer(builder, builder.add(address, _i64(64 * k)), U8.llvm), align=64)


@tile_op(F32, TILE, TILE, F32, F32, types.int64, types.int64, types.int64)
def add_group(
    builder: Any, acc: list[Any], dots: list[Any], scale: Any, offset: Any, records: Any, which: Any, stride: Any
) -> list[Any]:
    """`acc += dots * (scale * s) + offset * sum`; a token's record starts with s and holds the sum at byte `which`."""
    result = []
    for t, (a, d) in enumerate(zip(acc, dots, strict=True)):
        record = _at(builder, records, stride, t)
        own, total = _splat_float(builder, record), _splat_float(builder, builder.add(record, which))
        a = _fma(builder, builder.sitofp(d, F32.llvm), builder.fmul(scale, own), a)
        result.append(_fma(builder, offset, total, a))
    return result


@tile_op(F32, TILE, F32, types.int64, types.int64)
def add_scaled(builder: Any, acc: list[Any], v: Any, xs: Any, stride: Any) -> list[Any]:
    """`acc += v * xs` with each token's own float at `xs`."""
    return [_fma(builder, v, _splat_float(builder, _at(builder, xs, stride, t)), a) for t, a in enumerate(acc)]


@tile_op(F32, TILE, F32)
def add_to_all(builder: Any, acc: list[Any], v: Any) -> list[Any]:
    """`acc + v`."""
    return [builder.fadd(a, v) for a in acc]


@tile_op(F32, TILE, types.int64, types.int64)
def add_loaded(builder: Any, acc: list[Any], address: Any, stride: Any) -> list[Any]:
    """`acc +` the 16 floats of each token, `stride` bytes apart."""
    return [builder.fadd(a, _floats(builder, address, stride, t)) for t, a in enumerate(acc)]


@tile_op(F32, TILE, types.int64, types.int64)
def load_tile(builder: Any, like: list[Any], address: Any, stride: Any) -> list[Any]:
    """16 floats for each token of a tile as long as `like`, `stride` bytes apart."""
    return [_floats(builder, address, stride, t) for t in range(len(like))]


@tile_op(types.void, TILE, types.int64, types.int64)
def store_tile(builder: Any, acc: list[Any], address: Any, stride: Any) -> None:
    """Store each token's 16 floats, `stride` bytes apart."""
    for t, a in enumerate(acc):
        builder.store(a, pointer(builder, _at(builder, address, stride, t), F32.llvm), align=1)


def _floats(builder: Any, address: Any, stride: Any, t: int) -> Any:
    return builder.load(pointer(builder, _at(builder, address, stride, t), F32.llvm), align=1)


def _splat_float(builder: Any, address: Any) -> Any:
    return splat(builder, builder.load(pointer(builder, address, _f32), align=1), LANES)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return call(builder, "llvm.fma.v16f32", F32.llvm, a, b, c)
