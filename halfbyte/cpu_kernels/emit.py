"""Which kernel computes which op, and which ops one kernel takes together.

Fused: the sum behind a matrix product, the sum before a norm, and the quantization of what only matrices read.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnsupportedError
from ..model import program as ir
from ..quant import FORMATS
from .calls import (
    QUANTIZED,
    SHARED,
    Angles,
    Constant,
    Count,
    FileRows,
    Kv,
    Operand,
    Packed,
    Peaks,
    Ref,
    Scratch,
    ScratchStride,
    Shared,
    Stride,
    angles_name,
    float_bits,
    kv_name,
)  # fmt: skip
from .instruction import NO_WINDOW, attention_scratch_bytes, linear_scratch_bytes
from .kv_layout import key_bytes, value_bytes
from .lower import Lowering
from .packed import EMBED_SCRATCH


def _embed(low: Lowering, op: ir.Embed, later: tuple[ir.Op, ...]) -> None:
    table = low.tables.get(op.table)
    if table is None:  # a format without a kernel of its own: the caller decodes the rows
        return
    columns = low.program.widths[op.out]
    operands: dict[str, Operand] = {
        "table": FileRows(op.table),
        "row_bytes": FORMATS[table].row_bytes(columns),
        "columns": columns,
        "scale": float_bits(op.scale),
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
        "scratch": Scratch(linear_scratch_bytes(low.max_tokens, weight.columns)),
        "scratch_bytes": ScratchStride(),
        "peaks": Peaks() if out == low.program.logits else 0,
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


def _norm(low: Lowering, op: ir.RmsNorm, later: tuple[ir.Op, ...]) -> None:
    _emit_norm(low, op, None)


def _emit_norm(low: Lowering, op: ir.RmsNorm, added: ir.Add | None) -> None:
    width = low.program.widths[op.out]
    operands, writes = low.targets(op.out)
    if op.groups > 1:  # heads are normed in place of int8, which would need whole groups of 32
        operands, writes = {"out": Ref(op.out), "quantized": 0, "sums": 0, "q_stride": 0}, [op.out]
    operands |= {
        "count": Count(op.out),
        "x": Ref(op.x if added is None else added.a),
        "residual": 0 if added is None else Ref(added.b),
        "add_out": 0 if added is None else Ref(added.out),
        "weight": Constant(op.weight),
        "width": width // op.groups,
        "groups": op.groups,
        "eps": float_bits(op.eps),
        "stride": Stride(op.out),
    }
    reads = [op.x] if added is None else [added.a, added.b]
    low.call("norm", "norm", operands, reads, writes + ([] if added is None else [added.out]))
    if op.groups > 1:
        low.quantize(op.out)


def _add(low: Lowering, op: ir.Add, later: tuple[ir.Op, ...]) -> None:
    follower = later[0] if later else None
    if isinstance(follower, ir.RmsNorm) and follower.x == op.out and follower.groups == 1 and not low.forms(op.out)[1]:
        low.done(follower)
        _emit_norm(low, follower, op)
        return
    _elementwise(low, "add", op.a, op.b, 0.0, op.out)


def _elementwise(low: Lowering, kernel: str, a: str, b: str, factor: float, out: str) -> None:
    if out == low.program.logits:  # the logits have one place, the caller's
        if low.only_reader(a) is None:
            raise UnsupportedError(f"the CPU backend changes {a!r} in place: it has one reader and no tap")
        low.aliases[a] = out
    operands: dict[str, Operand] = {
        "count": Count(out),
        "a": Ref(a),
        "b": Ref(b),
        "factor": float_bits(factor),
        "out": Ref(out),
        "width": low.program.widths[out],
        "stride": Stride(out),
    }
    low.call(kernel, "elementwise", operands, [a, b], [out])
    low.quantize(out)


def _scale(low: Lowering, op: ir.Scale, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "scale", op.x, op.x, op.factor, op.out)


def _softcap(low: Lowering, op: ir.Softcap, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "softcap", op.x, op.x, op.cap, op.out)


ACTIVATIONS = ("silu", "gelu_tanh", "relu")


def _gated(low: Lowering, op: ir.GatedAct, later: tuple[ir.Op, ...]) -> None:
    if op.act not in ACTIVATIONS:
        raise UnsupportedError(f"the CPU backend has no activation {op.act!r}", known=ACTIVATIONS)
    operands, writes = low.targets(op.out)
    operands |= {
        "count": Count(op.out),
        "gate": Ref(op.gate),
        "up": Ref(op.up),
        "width": low.program.widths[op.out],
        "stride": Stride(op.gate),
    }
    low.call(f"gated_{op.act}", "gated", operands, [op.gate, op.up], writes)


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


def _kv_write(low: Lowering, op: ir.KvWrite, later: tuple[ir.Op, ...]) -> None:
    layer = low.program.kv_layers[op.layer]
    if op.k is None:
        raise UnsupportedError("the CPU backend has no kernel that keeps values without keys")
    operands: dict[str, Operand] = {
        "k": Ref(op.k),
        "v": Ref(op.v),
        "keys": Kv(op.layer, "keys"),
        "values": Kv(op.layer, "values"),
        "kv_heads": layer.kv_heads,
        "key_size": layer.key_size,
        "value_size": layer.value_size,
        "k_stride": Stride(op.k),
        "v_stride": Stride(op.v),
        "key_bytes": key_bytes(low.kv.keys, layer.key_size),
        "value_bytes": value_bytes(low.kv.values, layer.value_size),
    }
    low.call(low.over_kv("kv_write"), "kv_write", operands, [op.k, op.v], [kv_name(op.layer)])


LOG2_E = 1.4426950408889634
"""Scores are exponents of two; with a soft cap its kernel makes them so."""


def _attention(low: Lowering, op: ir.Attention, later: tuple[ir.Op, ...]) -> None:
    scratch = attention_scratch_bytes(op.key_size, op.value_size)
    operands: dict[str, Operand] = {
        "q": Ref(op.q),
        "keys": Kv(op.layer, "keys"),
        "values": Kv(op.layer, "values"),
        "out": Ref(op.out),
        "heads": op.heads,
        "kv_heads": op.kv_heads,
        "key_size": op.key_size,
        "value_size": op.value_size,
        "scale": float_bits(op.scale if op.softcap else op.scale * LOG2_E),
        "softcap": float_bits(op.softcap or 0.0),
        "window": op.window or NO_WINDOW,
        "q_stride": Stride(op.q),
        "out_stride": Stride(op.out),
        "scratch": Scratch(scratch),
        "scratch_bytes": ScratchStride(),
        "partials": Shared(),
        "key_bytes": key_bytes(low.kv.keys, op.key_size),
        "value_bytes": value_bytes(low.kv.values, op.value_size),
    }
    low.call(low.over_kv("attention"), "attention", operands, [op.q, kv_name(op.layer)], [op.out, SHARED])
    low.quantize(op.out)


def _take_rows(low: Lowering, op: ir.TakeRows, later: tuple[ir.Op, ...]) -> None:
    operands: dict[str, Operand] = {
        "x": Ref(op.x),
        "out": Ref(op.out),
        "width": low.program.widths[op.out],
        "stride": Stride(op.out),
    }
    low.call("take_rows", "take_rows", operands, [op.x], [op.out])
    low.quantize(op.out)


def _tap(low: Lowering, op: ir.Tap, later: tuple[ir.Op, ...]) -> None:
    """No call: a reader that takes no int8 form makes the float32 one needed, and the plan of the memory spares it."""


EMIT: dict[type[ir.Op], Callable[..., None]] = {
    ir.Embed: _embed,
    ir.Linear: _linear,
    ir.RmsNorm: _norm,
    ir.Add: _add,
    ir.Scale: _scale,
    ir.Softcap: _softcap,
    ir.GatedAct: _gated,
    ir.Rope: _rope,
    ir.KvWrite: _kv_write,
    ir.Attention: _attention,
    ir.TakeRows: _take_rows,
    ir.Tap: _tap,
}
