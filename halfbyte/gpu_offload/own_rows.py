"""Single rows that products norm for themselves, which takes less time than a launch."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import program as ir
from .calls import Grid
from .linear_shape import TileShape
from .lower import Lowering
from .packing import PackedMatrix


def own_norm(low: Lowering, x: str) -> ir.RmsNorm | None:
    """The norm that makes `x`, if nobody but products over bytes of its stage reads it: they do it for one row."""
    norm, readers = low.writer(x), low.readers(x)
    if low.prompt or not isinstance(norm, ir.RmsNorm) or norm.groups > 1:
        return None
    if low.is_done(norm) or not low.in_walk(norm):
        return None
    if not all(isinstance(op, ir.Linear) and low.in_walk(op) and low.multiplies_bytes(op) for op in readers):
        return None
    return norm if _room(low, [low.packed[name] for op in readers for name in op.weights()[:1]]) else None


def but_one(low: Lowering, value: str, grid: Grid) -> Grid:
    """The grid of the norm that makes a value: no blocks where there is one row, and products norm it."""
    if own_norm(low, value) is None:
        return grid
    return lambda sizes: (0, 1, 1) if low.most_rows(value, sizes) == 1 else grid(sizes)


def shape_of(low: Lowering, matrices: Sequence[PackedMatrix]) -> TileShape:
    """Of products that are one launch."""
    tiles = sum(-(-matrix.rows // 16) for matrix in matrices)
    return TileShape(matrices[0].family, tiles, matrices[0].columns, low.target.multiprocessors)


def _room(low: Lowering, matrices: Sequence[PackedMatrix]) -> bool:
    """Whether a block has room for a row of its own, whichever matrix it multiplies."""
    return all(shape_of(low, [matrix]).own_bytes(low.target.shared_bytes) for matrix in matrices)
