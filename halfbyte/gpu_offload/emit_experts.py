"""Which kernels choose experts, deal rows out to them, multiply and put together what they say."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import Operand, Packed, Ref, Sizes, Stride, Vector
from .emit_linear import FLOAT_WARPS
from .families import ROWS
from .grids import columns_of, warps_for
from .linear_shape import THREADS, WARPS, TileShape
from .lower import Lowering
from .routed import TILE_ROWS, most_tiles, most_tokens, places_scratch, plan_scratch, sources_scratch
from .together import together


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


def _expert_linear(low: Lowering, op: ir.ExpertLinear) -> None:
    if low.multiplies_bytes(op):
        _by_bytes(low, together(low, op, 2))
    else:
        _by_floats(low, op)


def _matrix(low: Lowering, op: ir.ExpertLinear) -> tuple[Operand, ...]:
    matrix, bias = low.packed[op.weight], 0 if op.bias is None else Vector(op.bias)
    return Packed(op.weight), matrix.n_bytes, matrix.rows, Ref(op.out), Stride(op.out), bias


def _by_bytes(low: Lowering, ops: list[ir.ExpertLinear]) -> None:
    first, matrix = ops[0], low.packed[ops[0].weight]
    tiles = sum(-(-low.packed[op.weight].rows // ROWS) for op in ops)
    used = low.routed_by(first.x).used
    # One token decides how sums are cut; more of them have other blocks.
    shape = TileShape(matrix.family, tiles * used, matrix.columns, low.target.multiprocessors)
    none: tuple[Operand, ...] = (0,) * 6
    operands = (
        low.count(first.x),
        *_matrix(low, first),
        *(_matrix(low, ops[1]) if len(ops) > 1 else none),
        *(Ref(first.x, "planes"), Ref(first.x, "records"), matrix.columns),
    )
    most = low.target.shared_bytes

    def grid(sizes: Sizes) -> tuple[int, int, int]:
        slots = most_tiles(sizes, used, first.experts)
        blocks = min(-(-shape.multiprocessors // slots), -(-tiles * shape.split // WARPS))
        rows = min(most_tokens(sizes), TILE_ROWS)
        return blocks, slots, -(-rows // (4 * shape.quads(most_tokens(sizes), most)))

    low.call(
        lambda sizes: shape.kernel("expert_linear", most_tokens(sizes), most),
        grid,
        THREADS,
        operands,
        (first.x, first.route),
        [op.out for op in ops],
        shared=lambda sizes: shape.shared(most_tokens(sizes), most),
    )


def _by_floats(low: Lowering, op: ir.ExpertLinear) -> None:
    matrix, used = low.packed[op.weight], low.routed_by(op.x).used
    operands = (low.count(op.x), *_matrix(low, op), Ref(op.x), Stride(op.x), matrix.columns)
    low.call(
        f"expert_floats<{matrix.family.name}>",
        lambda sizes: (-(-matrix.rows // FLOAT_WARPS), most_tiles(sizes, used, op.experts), 1),
        32 * FLOAT_WARPS,
        operands,
        (op.x, op.route),
        (op.out,),
    )


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
    ir.ExpertLinear: _expert_linear,
    ir.Combine: _combine,
}
