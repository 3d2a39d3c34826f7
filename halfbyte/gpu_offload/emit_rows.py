"""Which kernels compute the ops that treat every row by itself, except products, the rope and embeddings."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import Operand, Ref, StepAt, Stride, Vector
from .emit_kv import normed_by_rope
from .grids import columns_of, warps_for
from .lower import Lowering
from .own_rows import but_one

MOST_EARLY = 8192
"""Columns of a norm whose weight has room in shared memory behind the row, on every card."""

FUNCTIONS = {"silu": "Silu", "gelu_tanh": "GeluTanh", "gelu": "Gelu", "relu": "Relu"}
GATES = {name: f"Gated<{function}>" for name, function in FUNCTIONS.items()} | {"swiglu_oai": "SwigluOai"}


def _norm(low: Lowering, op: ir.RmsNorm | ir.LayerNorm) -> None:
    if isinstance(op, ir.RmsNorm) and normed_by_rope(low, op):
        return
    if isinstance(op, ir.RmsNorm) and op.groups > 1:
        _norm_groups(low, op)
    else:
        _emit_norm(low, op, None)


def _emit_norm(low: Lowering, op: ir.RmsNorm | ir.LayerNorm, added: ir.Add | None) -> None:
    width = low.program.widths[op.out]
    early = width % 4 == 0 and width <= MOST_EARLY
    bias = op.bias if isinstance(op, ir.LayerNorm) else None
    x, residual = (op.x, None) if added is None else (added.a, added.b)
    operands: tuple[Operand, ...] = (
        *_row(x),
        *((0, 0) if residual is None else _row(residual)),
        *((0, 0) if added is None else low.forms(added.out)[:2]),
        Vector(op.weight),
        0 if bias is None else Vector(bias),
        op.eps,
        width,
        int(early),
        low.count(op.out),
        *low.forms(op.out),
    )
    low.call(
        f"norm<{'true' if isinstance(op, ir.LayerNorm) else 'false'}>",
        but_one(low, op.out, low.each_row(op.out)) if added is None else low.each_row(op.out),
        warps_for(-(-width // 4), 512),
        operands,
        (x,) if residual is None else (x, residual),
        (op.out,) if added is None else (op.out, added.out),
        shared=_row_bytes(width) * (2 if early else 1),
    )


def _norm_groups(low: Lowering, op: ir.RmsNorm) -> None:
    width = low.program.widths[op.out]
    count = low.count(op.out)
    operands = (*_row(op.x), Vector(op.weight), op.eps, width, op.groups, count, *low.forms(op.out))
    threads = warps_for(max(-(-width // 4), 32 * op.groups), 512)
    low.call("norm_groups", low.each_row(op.out), threads, operands, (op.x,), (op.out,), shared=_row_bytes(width))


def _row(value: str) -> tuple[Operand, Operand]:
    return Ref(value), Stride(value)


def _row_bytes(width: int) -> int:
    return -(-width // 4) * 16


def _add(low: Lowering, op: ir.Add) -> None:
    norm = _norm_of(low, op)
    if norm is None:
        _elementwise(low, "Added", op.a, op.b, 0.0, op.out)
        return
    low.done(norm)
    _emit_norm(low, norm, op)


def _norm_of(low: Lowering, op: ir.Add) -> ir.RmsNorm | ir.LayerNorm | None:
    """The norm that comes next and can compute the sum along: of whole rows, which nobody needs in another form."""
    ops = low.program.ops
    after = ops[next(i for i, other in enumerate(ops) if other is op) + 1 :]
    norm = next((other for other in after if not isinstance(other, ir.Tap)), None)
    if not isinstance(norm, ir.RmsNorm | ir.LayerNorm) or norm.x != op.out or not low.in_walk(norm):
        return None
    if any(low.forms(op.out)[2:]):
        return None
    return None if isinstance(norm, ir.RmsNorm) and norm.groups > 1 else norm


def _elementwise(low: Lowering, function: str, a: str, b: str | Vector, factor: float, out: str) -> None:
    width, forms = low.program.widths[out], low.forms(out)
    threads, pieces = columns_of(width)
    other: tuple[Operand, Operand] = _row(b) if isinstance(b, str) else (b, 0)
    operands = (*_row(a), *other, factor, width, low.count(out), *forms)
    # A scale of halves is of the whole row.
    grid = low.each_row(out, 1 if forms[4] else pieces)
    low.call(f"elementwise<{function}>", grid, threads, operands, (a, b) if isinstance(b, str) else (a,), (out,))


def _add_vector(low: Lowering, op: ir.AddVector) -> None:
    _elementwise(low, "Added", op.x, Vector(op.vector), 0.0, op.out)


def _scale(low: Lowering, op: ir.Scale) -> None:
    _elementwise(low, "Scaled", op.x, op.x, op.factor, op.out)


def _softcap(low: Lowering, op: ir.Softcap) -> None:
    _elementwise(low, "Softcapped", op.x, op.x, op.cap, op.out)


def _gated(low: Lowering, op: ir.GatedAct) -> None:
    _elementwise(low, GATES[op.act], op.gate, op.up, 0.0, op.out)


def _act(low: Lowering, op: ir.Act) -> None:
    _elementwise(low, f"Activated<{FUNCTIONS[op.act]}>", op.x, op.x, 0.0, op.out)


def _mul(low: Lowering, op: ir.Mul) -> None:
    _elementwise(low, "Multiplied", op.a, op.b, 0.0, op.out)


def _add_scaled(low: Lowering, op: ir.AddScaled) -> None:
    width, forms = low.program.widths[op.out], low.forms(op.out)
    threads, pieces = columns_of(width)
    operands = (*_row(op.a), *_row(op.b), op.factor, op.adapter, int(op.asked), width, StepAt(), *forms)
    grid = low.each_row(op.out, 1 if forms[4] else pieces)
    low.call("add_scaled", grid, threads, operands, (op.a, op.b), (op.out,))


def _take_rows(low: Lowering, op: ir.TakeRows) -> None:
    width, forms = low.program.widths[op.out], low.forms(op.out)
    threads, pieces = columns_of(width)
    grid = low.each_row(op.out, 1 if forms[4] else pieces)
    low.call("take_rows", grid, threads, (*_row(op.x), width, StepAt(), *forms), (op.x,), (op.out,))


def _tap(low: Lowering, op: ir.Tap) -> None:
    """No call: the plan of the memory keeps the value."""


EMIT_ROWS: dict[type[ir.Op], Callable[..., None]] = {
    ir.Add: _add,
    ir.AddVector: _add_vector,
    ir.AddScaled: _add_scaled,
    ir.Scale: _scale,
    ir.Softcap: _softcap,
    ir.GatedAct: _gated,
    ir.Act: _act,
    ir.Mul: _mul,
    ir.RmsNorm: _norm,
    ir.LayerNorm: _norm,
    ir.TakeRows: _take_rows,
    ir.Tap: _tap,
}
