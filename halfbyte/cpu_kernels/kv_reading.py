"""How kernels read keys and values of each type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from .grids import add_products, load_halves
from .jit import helper
from .tiles import store_tile
from .vec import F32, TILE, tile_op

CHANNELS = 32
"""Channels of a block: those that share a scale."""
_i64 = ir.IntType(64)


@dataclass(frozen=True)
class KeyReader:
    """`read(pages, at, scales)`: 16 keys' channel a page, as many as there are `pages`; it lies `at` bytes into each.

    `scales(pages, at)`: the same of a block's scales, which lie before its channels. `second` reads another channel
    that shares the bytes of the first. `head_bytes(size)`: bytes of a head's keys in a page.
    """

    read: Callable[..., Any]
    second: Callable[..., Any] | None
    scales: Callable[..., Any]
    head_bytes: Callable[..., Any]
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
        def add_one(acc, pages, at, scales, q):
            return add_products(acc, read(pages, at, scales), q)

        @helper
        def add_two(acc, pages, at, scales, q):
            acc = add_products(acc, read(pages, at, scales), q)
            return add_products(acc, second(pages, at, scales), q + 4 * rows)

        return add_one if second is None else add_two

    def storer(self) -> Callable[..., Any]:
        """A helper that stores `step` channels as float32."""
        read, second = self.read, self.second

        @helper
        def store_one(pages, at, scales, target):
            store_tile(read(pages, at, scales), target, 64)

        @helper
        def store_two(pages, at, scales, target):
            store_tile(read(pages, at, scales), target, 64)
            store_tile(second(pages, at, scales), target + 64 * len(pages), 64)

        return store_one if second is None else store_two


@dataclass(frozen=True)
class ValueReader:
    """`read(like, page, size, place, chunk)`: as many vectors of channels as `like` is long, of one value.

    `where(page, size, place, chunk)`: the address of the first of them, `vector_bytes` each.
    """

    read: Callable[..., Any]
    where: Callable[..., Any]
    head_bytes: Callable[..., Any]
    vector_bytes: int


@tile_op(F32, TILE, types.int64)
def _no_scales(builder: Any, pages: list[Any], at: Any) -> list[Any]:
    return [ir.Constant(F32.llvm, None)] * len(pages)


@tile_op(F32, TILE, types.int64, TILE)
def _halves_of_pages(builder: Any, pages: list[Any], at: Any, scales: list[Any]) -> list[Any]:
    return [load_halves(builder, builder.add(page, at)) for page in pages]


@tile_op(F32, TILE, types.int64)
def _halves_in_a_row(builder: Any, like: list[Any], at: Any) -> list[Any]:
    return [load_halves(builder, builder.add(at, _i64(32 * i))) for i in range(len(like))]


@helper
def _f16_key_bytes(size):
    return 32 * size


@helper
def _f16_value_bytes(size):
    return 32 * ((size + 15) // 16 * 16)


@helper
def _where_f16(page, size, place, chunk):
    return page + 2 * (place * ((size + 15) // 16 * 16) + 16 * chunk)


@helper
def _read_f16(like, page, size, place, chunk):
    return _halves_in_a_row(like, _where_f16(page, size, place, chunk))


KEY_READERS = {"f16": KeyReader(_halves_of_pages, None, _no_scales, _f16_key_bytes, 0, 32)}
VALUE_READERS = {"f16": ValueReader(_read_f16, _where_f16, _f16_value_bytes, 32)}
