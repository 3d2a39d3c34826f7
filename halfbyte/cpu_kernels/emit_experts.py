"""Which kernels compute a mixture of experts."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import ORDER, QUANTIZED, Constant, Count, Operand, Packed, Ref, Scratch, ScratchStride, Stride, float_bits
from .instruction import linear_scratch_bytes
from .lower import Lowering


def _route(low: Lowering, op: ir.MoeRoute, later: tuple[ir.Op, ...]) -> None:
    order = op.out + ORDER
    operands: dict[str, Operand] = {
        "count": Count(op.x),
        "x": Ref(op.x),
        "out": Ref(op.out),
        "used": op.used,
        "experts": low.program.widths[op.x],
        "normalise": int(op.normalise),
        "scale": float_bits(op.scale),
        "stride": Stride(op.x),
        "out_stride": Stride(op.out),
        "order": Ref(order),
        "counters": Ref(order, "counters"),
        "sources": Ref(order, "sources"),
        "places": Ref(order, "places"),
    }
    low.call(f"route_{op.gate}", "route", operands, [op.x], [op.out, order])
    low.quantize(op.out)


def _dispatch(low: Lowering, op: ir.Dispatch, later: tuple[ir.Op, ...]) -> None:
    plain, quantized = low.forms(op.out)
    q, order = op.x + QUANTIZED, op.route + ORDER
    operands, writes = low.targets(op.out)
    operands |= {
        "count": Count(op.out),
        "x": Ref(op.x) if plain else 0,
        "x_quantized": Ref(q) if quantized else 0,
        "x_sums": Ref(q, "sums") if quantized else 0,
        "sources": Ref(order, "sources"),
        "width": low.program.widths[op.out],
        "stride": Stride(op.out),
    }
    low.call("dispatch", "dispatch", operands, [op.x] * plain + [q] * quantized, writes)


def _expert_linear(low: Lowering, op: ir.ExpertLinear, later: tuple[ir.Op, ...]) -> None:
    weight, plain = low.packed[op.weight], not low.reads_quantized(op)
    x, order = op.x if plain else op.x + QUANTIZED, op.route + ORDER
    operands: dict[str, Operand] = {
        "count": Count(op.x),
        "weights": Packed(op.weight),
        "x": Ref(x),
        "sums": 0 if plain else Ref(x, "sums"),
        "x_stride": Stride(x),
        "columns": weight.columns,
        "rows": weight.rows,
        "per_tile": weight.per_tile,
        "bias": 0 if op.bias is None else Constant(op.bias),
        "residual": 0,
        "residual_stride": 0,
        "out": Ref(op.out),
        "out_stride": Stride(op.out),
        # A token has an expert once: none has more rows than there are tokens.
        "scratch": Scratch(linear_scratch_bytes(low.max_tokens, weight.columns)),
        "scratch_bytes": ScratchStride(),
        "peaks": 0,
        "order": Ref(order),
        "expert_bytes": weight.n_bytes,
    }
    low.call(f"experts_{weight.family}", "experts", operands, [x], [op.out])
    low.quantize(op.out)


def _combine(low: Lowering, op: ir.Combine, later: tuple[ir.Op, ...]) -> None:
    order = op.route + ORDER
    operands: dict[str, Operand] = {
        "count": Count(op.out),
        "x": Ref(op.x),
        "route": Ref(op.route),
        "places": Ref(order, "places"),
        "used": low.program.widths[op.route] // 2,
        "out": Ref(op.out),
        "width": low.program.widths[op.out],
        "stride": Stride(op.out),
        "route_stride": Stride(op.route),
    }
    low.call("combine", "combine", operands, [op.x, op.route, order], [op.out])
    low.quantize(op.out)


EMIT_EXPERTS: dict[type[ir.Op], Callable[..., None]] = {
    ir.MoeRoute: _route,
    ir.Dispatch: _dispatch,
    ir.ExpertLinear: _expert_linear,
    ir.Combine: _combine,
}
