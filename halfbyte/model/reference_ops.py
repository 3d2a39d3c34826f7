"""What each op means, in NumPy float32: one function an op, found through `OPS`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .program import (
    Act,
    Activation,
    Add,
    AddScaled,
    AddVector,
    Embed,
    EmbedPositions,
    Gate,
    GatedAct,
    LayerNorm,
    Linear,
    Mul,
    Op,
    Receive,
    RmsNorm,
    Rope,
    Scale,
    Softcap,
    TakeRows,
    Tap,
)
from .reference_expert_ops import EXPERT_OPS
from .reference_kv_ops import KV_OPS
from .reference_state import Floats, State


def embed(op: Embed, state: State) -> None:
    """Rows of the table, scaled; only the rows that are asked for are decoded."""
    table = state.weights[op.table]
    rows = table.format.decode(table.data[state.batch.ids])
    state.values[op.out] = rows * np.float32(op.scale)


def embed_positions(op: EmbedPositions, state: State) -> None:
    """Rows by position."""
    table = state.weights[op.table]
    state.values[op.out] = table.format.decode(table.data[state.batch.positions])


def rms_norm(op: RmsNorm, state: State) -> None:
    """Mean of squares over each group, in float32."""
    x = state.values[op.x]
    # Not -1: between two chunks of a prompt no row is asked for, and 0 rows do not tell their width.
    grouped = x.reshape(len(x), op.groups, x.shape[1] // op.groups)
    mean = np.mean(grouped * grouped, axis=-1, keepdims=True, dtype=np.float32)
    normed = (grouped / np.sqrt(mean + np.float32(op.eps))).astype(np.float32, copy=False)
    state.values[op.out] = (normed * state.weight(op.weight)).reshape(x.shape)


def layer_norm(op: LayerNorm, state: State) -> None:
    """Mean and variance of each row, in float32."""
    x = state.values[op.x]
    centred = x - np.mean(x, axis=-1, keepdims=True, dtype=np.float32)
    variance = np.mean(centred * centred, axis=-1, keepdims=True, dtype=np.float32)
    normed = (centred / np.sqrt(variance + np.float32(op.eps))).astype(np.float32, copy=False)
    out = normed * state.weight(op.weight)
    state.values[op.out] = out if op.bias is None else out + state.weight(op.bias)


def linear(op: Linear, state: State) -> None:
    """One matrix product."""
    out = state.product(state.values[op.x], op.weight)
    state.values[op.out] = out if op.bias is None else out + state.weight(op.bias)


def rope(op: Rope, state: State) -> None:
    """Angles in double precision: a position times a frequency has no bits to spare in single."""
    x = state.values[op.x]
    heads = x.reshape(len(x), op.heads, -1).copy()
    n = len(op.table.inv_freq)
    angle = state.batch.positions[:, None, None] * np.asarray(op.table.inv_freq)
    cos = (np.cos(angle) * op.table.magnitude).astype(np.float32)
    sin = (np.sin(angle) * op.table.magnitude).astype(np.float32)
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if op.table.kind == "norm" else (slice(n), slice(n, 2 * n))
    a, b = heads[..., first].copy(), heads[..., second].copy()
    heads[..., first] = a * cos - b * sin
    heads[..., second] = a * sin + b * cos
    state.values[op.out] = heads.reshape(x.shape)


def gated_act(op: GatedAct, state: State) -> None:
    """The gate goes through the activation, then both are multiplied."""
    state.values[op.out] = gate_with(op.act, state.values[op.gate], state.values[op.up])


def gate_with(kind: Gate, gate: Floats, up: Floats) -> Floats:
    """The gated activations by name."""
    return _swiglu_oai(gate, up) if kind == "swiglu_oai" else activate(kind, gate) * up


OAI_SLOPE, OAI_LIMIT = np.float32(1.702), np.float32(7)


def _swiglu_oai(gate: Floats, up: Floats) -> Floats:
    gate, up = np.minimum(gate, OAI_LIMIT), np.clip(up, -OAI_LIMIT, OAI_LIMIT)
    with np.errstate(over="ignore"):
        return np.asarray(gate / (1 + np.exp(-OAI_SLOPE * gate)) * (up + 1), np.float32)


def act(op: Act, state: State) -> None:
    """One activation."""
    state.values[op.out] = activate(op.act, state.values[op.x])


def activate(kind: Activation, x: Floats) -> Floats:
    """The activation functions by name."""
    if kind == "relu":
        return np.maximum(x, np.float32(0))
    if kind == "silu":
        with np.errstate(over="ignore"):
            return np.asarray(x / (np.float32(1) + np.exp(-x)), np.float32)
    if kind == "gelu_tanh":
        inner = np.float32(math.sqrt(2 / math.pi)) * x * (np.float32(1) + np.float32(0.044715) * x * x)
        return np.asarray(np.float32(0.5) * x * (np.float32(1) + np.tanh(inner)), np.float32)
    error_function = np.vectorize(math.erf, otypes=[np.float32])
    twice = np.float32(1) + error_function(x / np.float32(math.sqrt(2)))
    return np.asarray(np.float32(0.5) * x * twice, np.float32)


def add(op: Add, state: State) -> None:
    """Elementwise."""
    state.values[op.out] = state.values[op.a] + state.values[op.b]


def add_scaled(op: AddScaled, state: State) -> None:
    """Where the scale is 0 not even a NaN comes through."""
    out = state.values[op.a].copy()
    scales = state.batch.adapter_scales
    if scales is not None:
        batch = state.batch
        scale = scales[batch.seq_of[batch.logit_rows] if op.asked else batch.seq_of, op.adapter]
        on = scale != 0
        out[on] += (scale[on] * np.float32(op.factor))[:, None] * state.values[op.b][on]
    state.values[op.out] = out


def mul(op: Mul, state: State) -> None:
    """Elementwise."""
    state.values[op.out] = state.values[op.a] * state.values[op.b]


def add_vector(op: AddVector, state: State) -> None:
    """To every row."""
    state.values[op.out] = state.values[op.x] + state.weight(op.vector)


def take_rows(op: TakeRows, state: State) -> None:
    """Rows in the order they are asked for."""
    state.values[op.out] = state.values[op.x][state.batch.logit_rows]


def scale(op: Scale, state: State) -> None:
    """By one factor."""
    state.values[op.out] = state.values[op.x] * np.float32(op.factor)


def softcap(op: Softcap, state: State) -> None:
    """Squeezed smoothly into -cap .. cap."""
    state.values[op.out] = np.float32(op.cap) * np.tanh(state.values[op.x] / np.float32(op.cap))


def receive(op: Receive, state: State) -> None:
    """The caller has put it there."""
    assert op.out in state.values, f"{op.out!r} was not received"


def tap(op: Tap, state: State) -> None:
    """Every value is there until the step ends anyway."""


OPS: dict[type[Op], Callable[[Any, State], None]] = {
    Embed: embed,
    EmbedPositions: embed_positions,
    LayerNorm: layer_norm,
    RmsNorm: rms_norm,
    Linear: linear,
    Rope: rope,
    GatedAct: gated_act,
    Act: act,
    Add: add,
    AddScaled: add_scaled,
    Mul: mul,
    AddVector: add_vector,
    TakeRows: take_rows,
    Scale: scale,
    Softcap: softcap,
    Receive: receive,
    Tap: tap,
    **KV_OPS,
    **EXPERT_OPS,
}
