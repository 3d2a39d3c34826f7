"""How kernels read keys and values of each type: as they lie in a page, see `kv_layout.py`, into registers.

A quantized number times its scale is exact in float32, so it does not matter who multiplies when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from .grids import add_products, at, load_bytes, load_floats, load_halves, load_same
from .jit import helper
from .ops import load_f16, mul, same, store_f32
from .tiles import store_tile
from .vec import F32, I32, LANES, TILE, call, tile_op

BLOCK = 32
"""Channels that share a scale."""
_i8, _i32 = ir.IntType(8), ir.IntType(32)


@dataclass(frozen=True)
class KeyReader:
    """`read(pages, place, scales)`: a channel of 16 keys from `place` bytes into each of some pages, a vector each.

    `scales(pages, place)`: the 16 scales of a block, `scale_bytes` that lie before its channels. `second` reads another
    channel that shares the bytes of the first. From one to the next are `step_bytes`.
    """

    read: Callable[..., Any]
    second: Callable[..., Any] | None
    scales: Callable[..., Any]
    scale_bytes: int
    step_bytes: int

    @property
    def step(self) -> int:
        """Channels that are read from the same bytes."""
        return 1 if self.second is None else 2

    def adder(self, rows: int) -> Callable[..., Any]:
        """A helper that adds the products of `step` channels with the queries of a tile."""
        read, second = self.read, self.second

        @helper
        def add_one(acc, pages, place, scales, q):
            return add_products(acc, read(pages, place, scales), q)

        @helper
        def add_two(acc, pages, place, scales, q):
            acc = add_products(acc, read(pages, place, scales), q)
            return add_products(acc, second(pages, place, scales), q + 4 * rows)

        return add_one if second is None else add_two

    def storer(self, width: int) -> Callable[..., Any]:
        """A helper that stores `step` channels of `width` pages as float32."""
        read, second = self.read, self.second

        @helper
        def store_one(pages, place, scales, target):
            store_tile(read(pages, place, scales), target, 64)

        @helper
        def store_two(pages, place, scales, target):
            store_tile(read(pages, place, scales), target, 64)
            store_tile(second(pages, place, scales), target + 64 * width, 64)

        return store_one if second is None else store_two


@dataclass(frozen=True)
class ValueReader:
    """`read(like, where, scales)`: as many vectors of channels as `like` is long, of one value.

    `where(page, size, place, chunk)`: the address of a value's channels from vector `chunk` on, an even one, or that of
    a block's first. `vector_bytes` each. `prepare(page, chunk, scales)` makes what `read` finds of a page's scales from
    there on, for token `place` at `scales + 4 * place`.
    """

    read: Callable[..., Any]
    where: Callable[..., Any]
    prepare: Callable[..., Any]
    vector_bytes: int


@tile_op(F32, TILE, types.int64)
def _no_scales(builder: Any, pages: list[Any], place: Any) -> list[Any]:
    return [ir.Constant(F32.llvm, None)] * len(pages)


@tile_op(F32, TILE, types.int64)
def _scales(builder: Any, pages: list[Any], place: Any) -> list[Any]:
    return [load_halves(builder, builder.add(page, place)) for page in pages]


@tile_op(F32, TILE, types.int64, TILE)
def _f32_keys(builder: Any, pages: list[Any], place: Any, scales: list[Any]) -> list[Any]:
    return [load_floats(builder, builder.add(page, place)) for page in pages]


@tile_op(F32, TILE, types.int64, TILE)
def _f16_keys(builder: Any, pages: list[Any], place: Any, scales: list[Any]) -> list[Any]:
    return [load_halves(builder, builder.add(page, place)) for page in pages]


@tile_op(F32, TILE, types.int64, TILE)
def _q8_0_keys(builder: Any, pages: list[Any], place: Any, scales: list[Any]) -> list[Any]:
    numbers = [_signed(builder, load_bytes(builder, builder.add(page, place))) for page in pages]
    return [builder.fmul(number, scale) for number, scale in zip(numbers, scales, strict=True)]


def _q4_0_keys(shift: int) -> Any:
    def emit(builder: Any, pages: list[Any], place: Any, scales: list[Any]) -> list[Any]:
        numbers = [_nibbles(builder, load_bytes(builder, builder.add(page, place)), shift) for page in pages]
        return [_scaled(builder, *pair, _offset(builder, pair[1])) for pair in zip(numbers, scales, strict=True)]

    emit.__name__ = f"q4_0_keys_{shift}"
    return tile_op(F32, TILE, types.int64, TILE)(emit)


def _signed(builder: Any, numbers: Any) -> Any:
    return builder.sitofp(builder.sext(numbers, I32.llvm), F32.llvm)


def _nibbles(builder: Any, numbers: Any, shift: int) -> Any:
    wide = builder.zext(numbers, I32.llvm)
    if shift:
        wide = builder.lshr(wide, ir.Constant(I32.llvm, [shift] * LANES))
    return builder.uitofp(builder.and_(wide, ir.Constant(I32.llvm, [15] * LANES)), F32.llvm)


def _offset(builder: Any, scale: Any) -> Any:
    return builder.fmul(scale, ir.Constant(F32.llvm, [-8.0] * LANES))


def _scaled(builder: Any, numbers: Any, scale: Any, offset: Any) -> Any:
    """`(numbers - 8) * scale`, exact as the product is."""
    return call(builder, "llvm.fma.v16f32", F32.llvm, numbers, scale, offset)


@helper
def _nothing(page, chunk, scales):
    pass


@helper
def _spread(page, chunk, scales):
    """Of the two blocks from vector `chunk` on, the scales as float32 and -8 times these: 128 bytes each."""
    for i in range(2):
        found = load_f16(page + 32 * (chunk // 2 + i))
        store_f32(scales + 128 * i, found)
        store_f32(scales + 128 * i + 64, mul(found, same(-8.0)))


@helper
def _f32_place(page, size, place, chunk):
    return page + 4 * (place * ((size + 15) // 16 * 16) + 16 * chunk)


@helper
def _f16_place(page, size, place, chunk):
    return page + 2 * (place * ((size + 15) // 16 * 16) + 16 * chunk)


@helper
def _q8_0_place(page, size, place, chunk):
    return page + (size + 31) // 32 * 32 + 16 * (place * ((size + 15) // 16) + chunk)


@helper
def _q4_0_place(page, size, place, chunk):
    return page + (size + 31) // 32 * (32 + 16 * place) + 8 * chunk


@tile_op(F32, TILE, types.int64, types.int64)
def _f32_values(builder: Any, like: list[Any], where: Any, scales: Any) -> list[Any]:
    return [load_floats(builder, at(builder, where, 64 * i)) for i in range(len(like))]


@tile_op(F32, TILE, types.int64, types.int64)
def _f16_values(builder: Any, like: list[Any], where: Any, scales: Any) -> list[Any]:
    return [load_halves(builder, at(builder, where, 32 * i)) for i in range(len(like))]


@tile_op(F32, TILE, types.int64, types.int64)
def _q8_0_values(builder: Any, like: list[Any], where: Any, scales: Any) -> list[Any]:
    numbers = [_signed(builder, load_bytes(builder, at(builder, where, 16 * i))) for i in range(len(like))]
    same = [load_same(builder, at(builder, scales, 128 * (i // 2))) for i in range(len(like))]
    return [builder.fmul(*pair) for pair in zip(numbers, same, strict=True)]


@tile_op(F32, TILE, types.int64, types.int64)
def _q4_0_values(builder: Any, like: list[Any], where: Any, scales: Any) -> list[Any]:
    result = []
    for i in range(len(like)):
        numbers = _nibbles(builder, load_bytes(builder, at(builder, where, 16 * (i // 2))), 4 * (i % 2))
        scale, offset = (load_same(builder, at(builder, scales, 128 * (i // 2) + part)) for part in (0, 64))
        result.append(_scaled(builder, numbers, scale, offset))
    return result


KEY_READERS = {
    "f32": KeyReader(_f32_keys, None, _no_scales, 0, 64),
    "f16": KeyReader(_f16_keys, None, _no_scales, 0, 32),
    "q8_0": KeyReader(_q8_0_keys, None, _scales, 32, 16),
    "q4_0": KeyReader(_q4_0_keys(0), _q4_0_keys(4), _scales, 32, 16),
}
VALUE_READERS = {
    "f32": ValueReader(_f32_values, _f32_place, _nothing, 64),
    "f16": ValueReader(_f16_values, _f16_place, _nothing, 32),
    "q8_0": ValueReader(_q8_0_values, _q8_0_place, _spread, 16),
    "q4_0": ValueReader(_q4_0_values, _q4_0_place, _spread, 8),
}
