"""Single rows that products make for themselves of what stands before them, which takes less time than a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model import program as ir
from .calls import Grid, Operand, Ref, Vector
from .linear_shape import TileShape
from .lower import Lowering
from .packing import PackedMatrix

FUNCTIONS = {"silu": "Silu", "gelu_tanh": "GeluTanh", "gelu": "Gelu", "relu": "Relu"}
GATES = {name: f"Gated<{function}>" for name, function in FUNCTIONS.items()} | {"swiglu_oai": "SwigluOai"}
PLANES = "FromPlanes"
"""Where a product finds x otherwise."""


class OwnRow(NamedTuple):
    """How a block makes x: the struct in `kernels/linear.cuh`, its two rows and a number, and the values it reads."""

    source: str
    operands: tuple[Operand, Operand, Operand]
    reads: tuple[str, ...]


def own_row(low: Lowering, x: str) -> OwnRow | None:
    """How products make a single row of `x`, if products over bytes of the same stage are all that reads it."""
    maker, readers = low.writer(x), low.readers(x)
    if low.prompt or maker is None or low.is_done(maker) or not low.in_walk(maker):
        return None
    if not all(isinstance(op, ir.Linear) and low.in_walk(op) and low.multiplies_bytes(op) for op in readers):
        return None
    if not _room(low, [low.packed[name] for op in readers for name in op.weights()[:1]]):
        return None
    match maker:
        case ir.RmsNorm(groups=1):
            return OwnRow("FromNorm", (Ref(maker.x), Vector(maker.weight), float(maker.eps)), (maker.x,))
        case ir.GatedAct():
            rows = (Ref(maker.gate), Ref(maker.up), 0.0)
            return OwnRow(f"FromRows<{GATES[maker.act]}>", rows, (maker.gate, maker.up))
    return None


def but_one(low: Lowering, value: str, grid: Grid) -> Grid:
    """The grid of what makes a value: no blocks where there is one row, and products make it."""
    if own_row(low, value) is None:
        return grid
    return lambda sizes: (0, 1, 1) if low.most_rows(value, sizes) == 1 else grid(sizes)


def shape_of(low: Lowering, matrices: Sequence[PackedMatrix]) -> TileShape:
    """Of products that are one launch."""
    tiles = sum(-(-matrix.rows // 16) for matrix in matrices)
    return TileShape(matrices[0].family, tiles, matrices[0].columns, low.target.multiprocessors)


def _room(low: Lowering, matrices: Sequence[PackedMatrix]) -> bool:
    """Whether a block has room for a row of its own, whichever matrix it multiplies."""
    return all(shape_of(low, [matrix]).own_bytes(low.target.shared_bytes) for matrix in matrices)
