"""`EMIT`: which function lowers which op."""

from __future__ import annotations

from ..model import program as ir
from .emit_embed import EMIT_EMBED
from .emit_experts import EMIT_EXPERTS
from .emit_kv import EMIT_KV
from .emit_linear import EMIT_LINEAR
from .emit_rows import EMIT_ROWS
from .lower import Emit, Lowering


def _receive(low: Lowering, op: ir.Receive) -> None:
    """Rows are copied from the host; other forms are made of them."""
    low.make_forms(op.out)


EMIT: dict[type[ir.Op], Emit] = {
    ir.Receive: _receive,
    **EMIT_ROWS,
    **EMIT_LINEAR,
    **EMIT_KV,
    **EMIT_EMBED,
    **EMIT_EXPERTS,
}
