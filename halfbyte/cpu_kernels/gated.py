"""Activations, gated ones and products, number by number: as floats, as int8, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import math
from .instruction import COUNTER, LAYOUTS
from .jit import helper
from .memory import atomic_add, load_i64
from .ops import load_f32, mul, store_f32
from .quantize import quantize_group

COUNT, GATE, UP, OUT, QUANTIZED, SUMS, WIDTH, STRIDE, Q_STRIDE = LAYOUTS["gated"].offsets()
SPAN = 256
"""Columns a thread takes at a time: a single token's row is shared by all threads."""


@helper
def _span(instr, value, token, begin, end):
    stride, q_stride = load_i64(instr + STRIDE), load_i64(instr + Q_STRIDE)
    gate, up = load_i64(instr + GATE) + token * stride, load_i64(instr + UP) + token * stride
    out, quantized = load_i64(instr + OUT), load_i64(instr + QUANTIZED)
    for c in range(begin, end, 32):
        a = value(load_f32(gate + 4 * c), load_f32(up + 4 * c))
        b = value(load_f32(gate + 4 * c + 64), load_f32(up + 4 * c + 64))
        if out != 0:
            store_f32(out + token * stride + 4 * c, a)
            store_f32(out + token * stride + 4 * c + 64, b)
        if quantized != 0:
            record = load_i64(instr + SUMS) + token * (q_stride // 4) + c // 2
            quantize_group(a, b, quantized + token * q_stride + 2 * c, record)


def _gate_with(act: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def gate_with(gate, up):
        return mul(act(gate), up)

    return gate_with


def _alone(act: Callable[..., Any]) -> Callable[..., Any]:
    @helper
    def alone(x, same_again):
        return act(x)

    return alone


def _kernel(value: Callable[..., Any]) -> Callable[..., None]:
    def gated(instr, state, tid, nth):
        width = load_i64(instr + WIDTH)
        spans = (width + SPAN - 1) // SPAN
        units = spans * load_i64(load_i64(instr + COUNT))
        while True:
            unit = atomic_add(instr + COUNTER, 1)
            if unit >= units:
                break
            begin = (unit % spans) * SPAN
            _span(instr, value, unit // spans, begin, min(begin + SPAN, width))

    return gated


ACTS = (math.silu, math.gelu_tanh, math.gelu, math.relu)
KERNELS = {
    **{f"gated_{act.__name__}": _kernel(_gate_with(act)) for act in ACTS},
    **{f"act_{act.__name__}": _kernel(_alone(act)) for act in ACTS},
    "gated_swiglu_oai": _kernel(math.swiglu_oai),
    "mul": _kernel(mul),
}
