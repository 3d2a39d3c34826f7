"""How rows of a packed matrix become halves, for products that read those."""

from __future__ import annotations

from typing import NamedTuple

from .families import ROWS, Family

_WARPS = 4
_UNIT = 256
"""Columns of a warp."""


class Dequantizing(NamedTuple):
    """A kernel and its grid. It takes a matrix, bytes to skip, where halves [count, M] go, M, first and count."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int


def dequantizing(family: Family, columns: int, first: int, count: int) -> Dequantizing:
    """Of rows `first` to `first + count` - 1."""
    threads = 32 * _WARPS
    if family.plain:
        blocks = -(-count * columns // (4 * threads))
    else:
        tiles = (first + count - 1) // ROWS - first // ROWS + 1
        blocks = -(-tiles * -(-columns // _UNIT) // _WARPS)
    return Dequantizing(f"dequantize<{family.name}>", (blocks, 1, 1), threads)
