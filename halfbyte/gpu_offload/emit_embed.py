"""Which kernels take rows from tables."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import Operand, Packed, StepAt
from .lower import Lowering

_THREADS = 256


def _table_rows(low: Lowering, op: ir.Embed | ir.EmbedPositions, factor: float, by_position: bool) -> None:
    columns = low.program.widths[op.out]
    operands: tuple[Operand, ...] = (
        Packed(op.table),
        columns,
        factor,
        StepAt(),
        int(by_position),
        *low.forms(op.out),
    )
    kernel = f"embed<{low.packed[op.table].family.name}>"
    low.call(kernel, low.each_row(op.out), _THREADS, operands, (), (op.out,), shared=-(-columns // 4) * 16)


def _embed(low: Lowering, op: ir.Embed) -> None:
    _table_rows(low, op, float(op.scale), by_position=False)


def _embed_positions(low: Lowering, op: ir.EmbedPositions) -> None:
    _table_rows(low, op, 1.0, by_position=True)


EMIT_EMBED: dict[type[ir.Op], Callable[..., None]] = {ir.Embed: _embed, ir.EmbedPositions: _embed_positions}
