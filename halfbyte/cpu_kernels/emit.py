"""Which kernel computes which op, and which ops one kernel takes together.

Fused: the sum behind a matrix product, the sum before a norm, and the quantization of what only matrices read.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from ..quant import FORMATS
from .calls import (
    QUANTIZED,
    Angles,
    Constant,
    Count,
    FileRows,
    Operand,
    Packed,
    Peaks,
    Ref,
    Scales,
    Scratch,
    ScratchStride,
    Stride,
    angles_name,
    float_bits,
)  # fmt: skip
from .emit_experts import EMIT_EXPERTS
from .emit_kv import KV_EMIT
from .instruction import linear_scratch_bytes, state
from .lower import Lowering
from .packed import EMBED_SCRATCH


def _embed(low: Lowering, op: ir.Embed, later: tuple[ir.Op, ...]) -> None:
    if op.table in low.tables:  # else the caller decodes the rows
        _table_rows(low, op, "ids", op.scale)


def _embed_positions(low: Lowering, op: ir.EmbedPositions, later: tuple[ir.Op, ...]) -> None:
    _table_rows(low, op, "positions", 1.0)


def _table_rows(low: Lowering, op: ir.Embed | ir.EmbedPositions, index: str, scale: float) -> None:
    table = low.tables[op.table]
    columns = low.program.widths[op.out]
    operands: dict[str, Operand] = {
        "table": FileRows(op.table),
        "row_bytes": FORMATS[table].row_bytes(columns),
        "columns": columns,
        "index": state(index),
        "scale": float_bits(scale),
        "out": Ref(op.out),
        "stride": Stride(op.out),
        "scratch": Scratch(EMBED_SCRATCH),
        "scratch_bytes": ScratchStride(),
    }
    low.call(f"embed_{table}", "embed", operands, [], [op.out])
    low.quantize(op.out)


def _linear(low: Lowering, op: ir.Linear, later: tuple[ir.Op, ...]) -> None:
    weight, plain = low.packed[op.weight], not low.reads_quantized(op)
    x = op.x if plain else op.x + QUANTIZED
    out, residual = op.out, _residual_of(low, op)
    if residual is not None:
        out = residual[1]
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
        "residual": 0 if residual is None else Ref(residual[0]),
        "residual_stride": 0 if residual is None else Stride(residual[0]),
        "out": Ref(out),
        "out_stride": Stride(out),
        "scratch": Scratch(linear_scratch_bytes(low.most_rows(op.x), weight.columns)),
        "scratch_bytes": ScratchStride(),
        "peaks": Peaks() if out == low.program.logits and not low.program.encoder else 0,
    }
    low.call(f"linear_{weight.family}", "linear", operands, [x] + ([residual[0]] if residual else []), [out])
    low.quantize(out)


def _residual_of(low: Lowering, op: ir.Linear) -> tuple[str, str] | None:
    """Other summand and result of the sum that alone reads a product, if the summand is there already."""
    reader = low.only_reader(op.out)
    if not isinstance(reader, ir.Add) or reader.a == reader.b:
        return None
    other = reader.b if reader.a == op.out else reader.a
    if not low.written_before(other, op):
        return None
    low.done(reader)
    return other, reader.out


def _norm(low: Lowering, op: ir.RmsNorm | ir.LayerNorm, later: tuple[ir.Op, ...]) -> None:
    _emit_norm(low, op, None)


def _emit_norm(low: Lowering, op: ir.RmsNorm | ir.LayerNorm, added: ir.Add | None) -> None:
    width = low.program.widths[op.out]
    groups, bias = (op.groups, None) if isinstance(op, ir.RmsNorm) else (1, op.bias)
    operands, writes = low.targets(op.out)
    if groups > 1:  # heads are normed in place of int8, which would need whole groups of 32
        operands, writes = {"out": Ref(op.out), "quantized": 0, "sums": 0, "q_stride": 0}, [op.out]
    operands |= {
        "count": Count(op.out),
        "x": Ref(op.x if added is None else added.a),
        "residual": 0 if added is None else Ref(added.b),
        "add_out": 0 if added is None else Ref(added.out),
        "weight": Constant(op.weight),
        "bias": 0 if bias is None else Constant(bias),
        "width": width // groups,
        "groups": groups,
        "eps": float_bits(op.eps),
        "stride": Stride(op.x),
        "out_stride": Stride(op.out),
    }
    reads = [op.x] if added is None else [added.a, added.b]
    kernel = "norm" if isinstance(op, ir.RmsNorm) else "layer_norm"
    low.call(kernel, "norm", operands, reads, writes + ([] if added is None else [added.out]))
    if groups > 1:
        low.quantize(op.out)


def _add(low: Lowering, op: ir.Add, later: tuple[ir.Op, ...]) -> None:
    follower = later[0] if later else None
    if isinstance(follower, ir.RmsNorm | ir.LayerNorm) and follower.x == op.out and _takes_sum(low, follower):
        low.done(follower)
        _emit_norm(low, follower, op)
        return
    _elementwise(low, "add", op.a, op.b, 0.0, op.out)


def _takes_sum(low: Lowering, norm: ir.RmsNorm | ir.LayerNorm) -> bool:
    """Whether a norm can compute the sum along that it reads: of whole rows, which nobody needs as int8."""
    return (isinstance(norm, ir.LayerNorm) or norm.groups == 1) and not low.forms(norm.x)[1]


def _add_vector(low: Lowering, op: ir.AddVector, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "add", op.x, Constant(op.vector), 0.0, op.out)


def _elementwise(low: Lowering, kernel: str, a: str, b: str | Constant, factor: float, out: str) -> None:
    if out == low.program.logits:
        low.in_place(a, out)
    operands: dict[str, Operand] = {
        "count": Count(out),
        "a": Ref(a),
        "b": Ref(b) if isinstance(b, str) else b,
        "b_stride": Stride(b) if isinstance(b, str) else 0,
        "factor": float_bits(factor),
        "out": Ref(out),
        "width": low.program.widths[out],
        "stride": Stride(out),
    }
    low.call(kernel, "elementwise", operands, [a, b] if isinstance(b, str) else [a], [out])
    low.quantize(out)


def _scale(low: Lowering, op: ir.Scale, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "scale", op.x, op.x, op.factor, op.out)


def _softcap(low: Lowering, op: ir.Softcap, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "softcap", op.x, op.x, op.cap, op.out)


def _add_scaled(low: Lowering, op: ir.AddScaled, later: tuple[ir.Op, ...]) -> None:
    """In place, so that steps without the adapter leave the call out."""
    low.in_place(op.a, op.out)
    operands: dict[str, Operand] = {
        "count": Count(op.out),
        "scales": Scales(op.adapter, op.asked),
        "b": Ref(op.b),
        "b_stride": Stride(op.b),
        "factor": float_bits(op.factor),
        "out": Ref(op.out),
        "width": low.program.widths[op.out],
        "stride": Stride(op.out),
    }
    low.call("add_scaled", "add_scaled", operands, [op.a, op.b], [op.out], op.adapter)
    low.quantize(op.out)


def _gated(low: Lowering, op: ir.GatedAct, later: tuple[ir.Op, ...]) -> None:
    _by_number(low, f"gated_{op.act}", op.gate, op.up, op.out)


def _act(low: Lowering, op: ir.Act, later: tuple[ir.Op, ...]) -> None:
    _by_number(low, f"act_{op.act}", op.x, op.x, op.out)


def _mul(low: Lowering, op: ir.Mul, later: tuple[ir.Op, ...]) -> None:
    _by_number(low, "mul", op.a, op.b, op.out)


def _by_number(low: Lowering, kernel: str, gate: str, up: str, out: str) -> None:
    operands, writes = low.targets(out)
    operands |= {
        "count": Count(out),
        "gate": Ref(gate),
        "up": Ref(up),
        "width": low.program.widths[out],
        "stride": Stride(gate),
    }
    low.call(kernel, "gated", operands, [gate, up], writes)


def _rope(low: Lowering, op: ir.Rope, later: tuple[ir.Op, ...]) -> None:
    operands: dict[str, Operand] = {
        "x": Ref(op.x),
        "out": Ref(op.out),
        "angles": Angles(op.table),
        "pairs": len(op.table.inv_freq),
        "heads": op.heads,
        "head_size": low.program.widths[op.out] // op.heads,
        "stride": Stride(op.out),
    }
    low.call(f"rope_{op.table.kind}", "rope", operands, [op.x, angles_name(op.table)], [op.out])
    low.quantize(op.out)


def _take_rows(low: Lowering, op: ir.TakeRows, later: tuple[ir.Op, ...]) -> None:
    operands: dict[str, Operand] = {
        "x": Ref(op.x),
        "out": Ref(op.out),
        "width": low.program.widths[op.out],
        "stride": Stride(op.x),
        "out_stride": Stride(op.out),
    }
    low.call("take_rows", "take_rows", operands, [op.x], [op.out])
    low.quantize(op.out)


def _receive(low: Lowering, op: ir.Receive, later: tuple[ir.Op, ...]) -> None:
    """The caller writes the rows."""
    low.quantize(op.out)


def _tap(low: Lowering, op: ir.Tap, later: tuple[ir.Op, ...]) -> None:
    """No call: a reader that takes no int8 form makes the float32 one needed, and the plan of the memory spares it."""


EMIT: dict[type[ir.Op], Callable[..., None]] = {
    ir.Embed: _embed,
    ir.EmbedPositions: _embed_positions,
    ir.Linear: _linear,
    ir.RmsNorm: _norm,
    ir.LayerNorm: _norm,
    ir.Add: _add,
    ir.AddScaled: _add_scaled,
    ir.AddVector: _add_vector,
    ir.Scale: _scale,
    ir.Softcap: _softcap,
    ir.GatedAct: _gated,
    ir.Act: _act,
    ir.Mul: _mul,
    ir.Rope: _rope,
    ir.TakeRows: _take_rows,
    ir.Receive: _receive,
    ir.Tap: _tap,
    **KV_EMIT,
    **EMIT_EXPERTS,
}
