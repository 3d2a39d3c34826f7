"""What must hold of each op by itself: `RULES`, and the shapes of the weights it reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .program import (
    Act,
    Add,
    AddScaled,
    AddVector,
    Attention,
    Combine,
    Dispatch,
    Embed,
    EmbedPositions,
    ExpertLinear,
    GatedAct,
    KvWrite,
    LayerNorm,
    Linear,
    MoeRoute,
    Mul,
    Op,
    Program,
    Receive,
    RmsNorm,
    Rope,
    Scale,
    ShortConv,
    Softcap,
    TakeRows,
    Tap,
)

Shape = tuple[int, int]


def shapes_of(op: Op, program: Program) -> Iterator[tuple[str, Shape]]:
    """(N, M) of each weight that an op reads; a vector has N = 1."""
    widths = program.widths
    if isinstance(op, Embed):
        yield op.table, (program.vocab_size, widths.get(op.out, 0))
    elif isinstance(op, RmsNorm):
        yield op.weight, (1, widths.get(op.x, 0) // max(1, op.groups))
    elif isinstance(op, EmbedPositions):
        yield op.table, (op.length, widths.get(op.out, 0))
    elif isinstance(op, LayerNorm):
        yield from ((name, (1, widths.get(op.x, 0))) for name in op.weights())
    elif isinstance(op, AddVector):
        yield op.vector, (1, widths.get(op.x, 0))
    elif isinstance(op, ShortConv):
        yield op.weight, (widths.get(op.out, 0), op.taps)
    elif isinstance(op, Attention) and op.sinks is not None:
        yield op.sinks, (1, op.heads)
    elif isinstance(op, ExpertLinear):
        yield op.weight, (op.experts * widths.get(op.out, 0), widths.get(op.x, 0))
        if op.bias is not None:
            yield op.bias, (op.experts, widths.get(op.out, 0))
    elif isinstance(op, Linear):
        yield op.weight, (widths.get(op.out, 0), widths.get(op.x, 0))
        if op.bias is not None:
            yield op.bias, (1, widths.get(op.out, 0))


def _same_width(op: Op, program: Program) -> Iterator[str]:
    found = {name: program.widths[name] for name in op.reads() + op.writes()}
    if len(set(found.values())) > 1:
        yield "widths differ: " + ", ".join(f"{name} {width}" for name, width in found.items())


def _free(op: Op, program: Program) -> Iterator[str]:
    """Any input and output width will do: the weight's shape follows from them."""
    yield from ()


def _check_norm(op: RmsNorm, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if op.groups < 1 or program.widths[op.x] % op.groups:
        yield f"{op.groups} groups do not divide {program.widths[op.x]}"
    if not 0 < op.eps < math.inf:
        yield f"eps is {op.eps}"


def _check_rope(op: Rope, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    width, turned = program.widths[op.x], 2 * len(op.table.inv_freq)
    if op.heads < 1 or width % op.heads:
        yield f"{op.heads} heads do not divide {width}"
    elif turned > width // op.heads:
        yield f"{turned} channels turn in heads of {width // op.heads}"
    if not all(map(math.isfinite, (*op.table.inv_freq, op.table.magnitude))):
        yield "the rope table holds values that are not finite"


def _check_kv_write(op: KvWrite, program: Program) -> Iterator[str]:
    if not 0 <= op.layer < len(program.kv_layers):
        yield f"there is no KV layer {op.layer}"
        return
    layer = program.kv_layers[op.layer]
    for name, size in ((op.k, layer.key_size), (op.v, layer.value_size)):
        width = 0 if name is None else program.widths[name]
        if width != layer.kv_heads * size:
            yield f"{name!r} is {width} wide, KV layer {op.layer} holds {layer.kv_heads} heads of {size}"


def _check_short_conv(op: ShortConv, program: Program) -> Iterator[str]:
    if not 0 <= op.layer < len(program.kv_layers):
        yield f"there is no KV layer {op.layer}"
        return
    layer = program.kv_layers[op.layer]
    if program.widths[op.out] != layer.kv_heads * layer.value_size:
        yield f"{op.out!r} is {program.widths[op.out]} wide, the values of KV layer {op.layer} {layer.value_size}"
    if layer.window != op.taps or op.taps < 2:
        yield f"{op.taps} taps look at {layer.window} values of KV layer {op.layer}"


def _check_attention(op: Attention, program: Program) -> Iterator[str]:
    if not 0 <= op.layer < len(program.kv_layers):
        yield f"there is no KV layer {op.layer}"
        return
    layer = program.kv_layers[op.layer]
    for name in ("kv_heads", "key_size", "value_size", "window"):
        if getattr(op, name) != getattr(layer, name):
            yield f"{name} is {getattr(op, name)}, of KV layer {op.layer} {getattr(layer, name)}"
    if op.kv_heads < 1 or op.heads % op.kv_heads:
        yield f"{op.kv_heads} KV heads do not divide {op.heads} heads"
    for value, size in ((op.q, op.key_size), (op.out, op.value_size)):
        if program.widths[value] != op.heads * size:
            yield f"{value!r} is {program.widths[value]} wide, not {op.heads} heads of {size}"
    if not math.isfinite(op.scale) or (op.window is not None and op.window < 1):
        yield f"scale is {op.scale}, window {op.window}"
    if op.softcap is not None and not 0 < op.softcap < math.inf:
        yield f"softcap is {op.softcap}"
    if not op.causal and (op.window is not None or not program.encoder):
        yield "only an encoder without windows looks ahead"


def _check_route(op: MoeRoute, program: Program) -> Iterator[str]:
    experts, width = program.widths[op.x], program.widths[op.out]
    if not 1 <= op.used <= experts or width != 2 * op.used:
        yield f"{op.used} of {experts} experts in {width} columns"
    if not math.isfinite(op.scale):
        yield f"scale is {op.scale}"


def _check_dispatch(op: Dispatch | Combine, program: Program) -> Iterator[str]:
    if program.widths[op.x] != program.widths[op.out]:
        yield f"{op.x!r} is {program.widths[op.x]} wide, {op.out!r} {program.widths[op.out]}"


def _check_layer_norm(op: LayerNorm, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if not 0 < op.eps < math.inf:
        yield f"eps is {op.eps}"


def _check_add_scaled(op: AddScaled, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if op.adapter < 0 or not math.isfinite(op.factor):
        yield f"adapter is {op.adapter}, factor {op.factor}"


def _check_softcap(op: Softcap, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if not 0 < op.cap < math.inf:
        yield f"cap is {op.cap}"


RULES: dict[type[Op], Callable[[Any, Program], Iterator[str]]] = {
    Embed: _free,
    EmbedPositions: _free,
    RmsNorm: _check_norm,
    LayerNorm: _check_layer_norm,
    Linear: _free,
    Rope: _check_rope,
    KvWrite: _check_kv_write,
    Attention: _check_attention,
    ShortConv: _check_short_conv,
    GatedAct: _same_width,
    Act: _same_width,
    Add: _same_width,
    AddScaled: _check_add_scaled,
    Mul: _same_width,
    AddVector: _same_width,
    TakeRows: _same_width,
    Scale: _same_width,
    Softcap: _check_softcap,
    Receive: _free,
    Tap: _free,
    MoeRoute: _check_route,
    Dispatch: _check_dispatch,
    ExpertLinear: _free,
    Combine: _check_dispatch,
}
