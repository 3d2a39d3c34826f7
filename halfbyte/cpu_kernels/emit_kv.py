"""Calls for ops on KV layers: what writes to them, and what looks back."""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import SHARED, Constant, Kv, Operand, Ref, Scratch, ScratchStride, Shared, Stride, float_bits, kv_name
from .instruction import NO_WINDOW, attention_scratch_bytes
from .kv_layout import key_bytes, value_bytes
from .lower import Lowering


def _kv_write(low: Lowering, op: ir.KvWrite, later: tuple[ir.Op, ...]) -> None:
    layer, types = low.program.kv_layers[op.layer], low.kv_of(op.layer)
    operands: dict[str, Operand] = {
        "k": 0 if op.k is None else Ref(op.k),
        "v": Ref(op.v),
        "keys": 0 if op.k is None else Kv(op.layer, "keys"),
        "values": Kv(op.layer, "values"),
        "kv_heads": layer.kv_heads,
        "key_size": layer.key_size,
        "value_size": layer.value_size,
        "k_stride": 0 if op.k is None else Stride(op.k),
        "v_stride": Stride(op.v),
        "key_bytes": key_bytes(types.keys, layer.key_size),
        "value_bytes": value_bytes(types.values, layer.value_size),
    }
    low.call(low.over_kv("kv_write", op.layer), "kv_write", operands, op.reads(), [kv_name(op.layer)])


LOG2_E = 1.4426950408889634
"""Scores are exponents of two; with a soft cap its kernel makes them so."""


def _attention(low: Lowering, op: ir.Attention, later: tuple[ir.Op, ...]) -> None:
    scratch, types = attention_scratch_bytes(op.key_size, op.value_size), low.kv_of(op.layer)
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
        "key_bytes": key_bytes(types.keys, op.key_size),
        "value_bytes": value_bytes(types.values, op.value_size),
        "sinks": 0 if op.sinks is None else Constant(op.sinks),
        "ahead": int(not op.causal),
    }
    low.call(low.over_kv("attention", op.layer), "attention", operands, [op.q, kv_name(op.layer)], [op.out, SHARED])
    low.quantize(op.out)


def _short_conv(low: Lowering, op: ir.ShortConv, later: tuple[ir.Op, ...]) -> None:
    layer, kind = low.program.kv_layers[op.layer], low.kv_of(op.layer).values
    operands: dict[str, Operand] = {
        "weight": Constant(op.weight),
        "values": Kv(op.layer, "values"),
        "out": Ref(op.out),
        "kv_heads": layer.kv_heads,
        "value_size": layer.value_size,
        "value_bytes": value_bytes(kind, layer.value_size),
        "taps": op.taps,
        "stride": Stride(op.out),
    }
    low.call(f"conv_{kind}", "conv", operands, [kv_name(op.layer)], [op.out])
    low.quantize(op.out)


KV_EMIT: dict[type[ir.Op], Callable[..., None]] = {
    ir.KvWrite: _kv_write,
    ir.Attention: _attention,
    ir.ShortConv: _short_conv,
}
