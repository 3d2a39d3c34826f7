"""Which kernels choose experts, deal rows out to them and put together what they say."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import Operand, Ref, Stride
from .grids import columns_of, warps_for
from .lower import Lowering
from .routed import TILE_ROWS, places_scratch, plan_scratch, sources_scratch


def _route(low: Lowering, op: ir.MoeRoute) -> None:
    experts, used = low.program.widths[op.x], op.used
    out = Ref(op.out), Stride(op.out)
    count = low.count(op.x)
    operands: tuple[Operand, ...] = (Ref(op.x), Stride(op.x), experts, used, int(op.normalise), op.scale, count, *out)
    kernel, threads = f"route<{'true' if op.gate == 'softmax' else 'false'}>", warps_for(experts, 256)
    shared = 4 * (2 * experts + used)
    low.call(kernel, low.each_row(op.out), threads, operands, (op.x,), (op.out,), shared=shared)
    scratch = plan_scratch(used, experts), sources_scratch(used), places_scratch(used)
    plan: tuple[Operand, ...] = (*out, used, experts, TILE_ROWS, count, *scratch)
    low.call("plan_experts", lambda sizes: (experts, 1, 1), 128, plan, (op.out,), (), shared=4 * experts)


def _dispatch(low: Lowering, op: ir.Dispatch) -> None:
    width, forms = low.program.widths[op.out], low.forms(op.out)
    threads, pieces = columns_of(width)
    sources = sources_scratch(low.program.widths[op.route] // 2)
    operands = (Ref(op.x), Stride(op.x), width, low.count(op.out), sources, *forms)
    grid = low.each_row(op.out, 1 if forms[4] else pieces)
    low.call("dispatch", grid, threads, operands, (op.x, op.route), (op.out,))


def _combine(low: Lowering, op: ir.Combine) -> None:
    add = _added_to(low, op)
    out, residual = (op.out, None) if add is None else (add.out, add.a if add.b == op.out else add.b)
    if add is not None:
        low.done(add)
    width, forms = low.program.widths[out], low.forms(out)
    threads, pieces = columns_of(width)
    used = low.program.widths[op.route] // 2
    operands: tuple[Operand, ...] = (
        *(Ref(op.x), Stride(op.x)),
        *(Ref(op.route), Stride(op.route)),
        used,
        places_scratch(used),
        *((0, 0) if residual is None else (Ref(residual), Stride(residual))),
        width,
        low.count(out),
        *forms,
    )
    reads = (op.x, op.route) if residual is None else (op.x, op.route, residual)
    low.call("combine", low.each_row(out, 1 if forms[4] else pieces), threads, operands, reads, (out,))


def _added_to(low: Lowering, op: ir.Combine) -> ir.Add | None:
    """The sum that alone reads what experts say, if its other summand is there already."""
    add = low.only_reader(op.out)
    if not isinstance(add, ir.Add) or add.a == add.b:
        return None
    return add if low.written_before(add.a if add.b == op.out else add.b, op) else None


EMIT_EXPERTS: dict[type[ir.Op], Callable[..., None]] = {
    ir.MoeRoute: _route,
    ir.Dispatch: _dispatch,
    ir.Combine: _combine,
}
