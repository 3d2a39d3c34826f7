"""`backward`: a program run in reverse over the values of one step, in NumPy float32.

Each op passes on what a small change of its result would do to what it read. It is for measuring how much weights
matter, not for training: gradients of matrices are given as their two factors, and those of vectors not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .gradient_experts import EXPERT_BACKWARD
from .gradient_kv import KV_BACKWARD
from .program import (
    Act,
    Activation,
    Add,
    AddScaled,
    AddVector,
    Embed,
    EmbedPositions,
    GatedAct,
    KvWrite,
    LayerNorm,
    Linear,
    Mul,
    Op,
    Program,
    Receive,
    RmsNorm,
    Rope,
    Scale,
    Softcap,
    TakeRows,
    Tap,
)
from .reference_ops import activate, gate_with
from .reference_state import Floats
from .reverse import Reverse

_STEP, _TWO = np.float32(1 / 64), np.float32(1 / 32)


def backward(program: Program, reverse: Reverse, logits: Floats) -> None:
    """Start from the gradient of the logits f32[R, V] and go through all ops, the last first."""
    reverse.written = {op.layer: op for op in program.ops if isinstance(op, KvWrite)}
    reverse.add(program.logits, logits)
    for op in reversed(program.ops):
        # A gradient is complete once the op that wrote the value is reached, and of no use behind it.
        grad = reverse.grads.pop(op.writes()[0], None) if op.writes() else None
        if grad is not None or isinstance(op, KvWrite):
            BACKWARD[type(op)](op, reverse, grad)


def embed(op: Embed, reverse: Reverse, grad: Floats) -> None:
    """To the rows that were taken."""
    reverse.rows(op.table, reverse.state.batch.ids, grad * np.float32(op.scale))


def embed_positions(op: EmbedPositions, reverse: Reverse, grad: Floats) -> None:
    """To the rows of the positions."""
    reverse.rows(op.table, reverse.state.batch.positions, grad)


def layer_norm(op: LayerNorm, reverse: Reverse, grad: Floats) -> None:
    """What lies along the normed row, and what moves all of it alike, is lost in the norm."""
    x = reverse.state.values[op.x]
    centred = x - np.mean(x, axis=-1, keepdims=True)
    inverse = 1 / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(op.eps))
    normed, weighted = centred * inverse, grad * reverse.state.weight(op.weight)
    along = np.mean(weighted * normed, axis=-1, keepdims=True)
    reverse.add(op.x, inverse * (weighted - np.mean(weighted, axis=-1, keepdims=True) - normed * along))


def rms_norm(op: RmsNorm, reverse: Reverse, grad: Floats) -> None:
    """What lies along the normed row itself is lost in the norm."""
    x = reverse.state.values[op.x]
    grouped = x.reshape(len(x), op.groups, -1)
    inverse = 1 / np.sqrt(np.mean(grouped * grouped, axis=-1, keepdims=True) + np.float32(op.eps))
    normed = grouped * inverse
    weighted = grad.reshape(grouped.shape) * reverse.state.weight(op.weight)
    along = np.mean(weighted * normed, axis=-1, keepdims=True)
    reverse.add(op.x, (inverse * (weighted - normed * along)).reshape(x.shape))


def linear(op: Linear, reverse: Reverse, grad: Floats) -> None:
    """Through the matrix, transposed."""
    reverse.matrix(op.weight, grad, reverse.state.values[op.x], 0)
    reverse.add(op.x, grad @ reverse.state.weight(op.weight))


def rope(op: Rope, reverse: Reverse, grad: Floats) -> None:
    """Turned back."""
    heads = grad.reshape(len(grad), op.heads, -1).copy()
    n = len(op.table.inv_freq)
    angle = reverse.state.batch.positions[:, None, None] * np.asarray(op.table.inv_freq)
    cos = (np.cos(angle) * op.table.magnitude).astype(np.float32)
    sin = (np.sin(angle) * op.table.magnitude).astype(np.float32)
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if op.table.kind == "norm" else (slice(n), slice(n, 2 * n))
    a, b = heads[..., first].copy(), heads[..., second].copy()
    heads[..., first] = a * cos + b * sin
    heads[..., second] = b * cos - a * sin
    reverse.add(op.x, heads.reshape(grad.shape))


def gated_act(op: GatedAct, reverse: Reverse, grad: Floats) -> None:
    """To both factors, by a small step of each to either side, which serves every activation there is."""
    gate, up = reverse.state.values[op.gate], reverse.state.values[op.up]
    of_gate = (gate_with(op.act, gate + _STEP, up) - gate_with(op.act, gate - _STEP, up)) / _TWO
    of_up = (gate_with(op.act, gate, up + _STEP) - gate_with(op.act, gate, up - _STEP)) / _TWO
    reverse.add(op.gate, np.asarray(grad * of_gate, np.float32))
    reverse.add(op.up, np.asarray(grad * of_up, np.float32))


def act(op: Act, reverse: Reverse, grad: Floats) -> None:
    """By the slope."""
    reverse.add(op.x, grad * slope_of(op.act, reverse.state.values[op.x]))


def slope_of(kind: Activation, x: Floats) -> Floats:
    """By a small step to either side."""
    return (activate(kind, x + _STEP) - activate(kind, x - _STEP)) / _TWO


def add(op: Add, reverse: Reverse, grad: Floats) -> None:
    """To both."""
    reverse.add(op.a, grad)
    reverse.add(op.b, grad)


def mul(op: Mul, reverse: Reverse, grad: Floats) -> None:
    """To each by the other."""
    reverse.add(op.a, grad * reverse.state.values[op.b])
    reverse.add(op.b, grad * reverse.state.values[op.a])


def add_vector(op: AddVector, reverse: Reverse, grad: Floats) -> None:
    """As it is."""
    reverse.add(op.x, grad)


def add_scaled(op: AddScaled, reverse: Reverse, grad: Floats) -> None:
    """To what an adapter adds as far as it is wanted."""
    reverse.add(op.a, grad)
    batch = reverse.state.batch
    if batch.adapter_scales is not None:
        rows = batch.seq_of[batch.logit_rows] if op.asked else batch.seq_of
        scale = batch.adapter_scales[rows, op.adapter] * np.float32(op.factor)
        reverse.add(op.b, scale[:, None] * grad)


def take_rows(op: TakeRows, reverse: Reverse, grad: Floats) -> None:
    """To the rows that were asked for."""
    whole = np.zeros_like(reverse.state.values[op.x])
    np.add.at(whole, reverse.state.batch.logit_rows, grad)
    reverse.add(op.x, whole)


def scale(op: Scale, reverse: Reverse, grad: Floats) -> None:
    """By the same factor."""
    reverse.add(op.x, grad * np.float32(op.factor))


def softcap(op: Softcap, reverse: Reverse, grad: Floats) -> None:
    """Less where it bends."""
    bent = reverse.state.values[op.out] / np.float32(op.cap)
    reverse.add(op.x, grad * (1 - bent * bent))


def receive(op: Receive, reverse: Reverse, grad: Floats) -> None:
    """It goes on in the share that made it, which is not here."""


def tap(op: Tap, reverse: Reverse, grad: Floats) -> None:
    """Nothing comes of it."""


BACKWARD: dict[type[Op], Callable[[Any, Reverse, Any], None]] = {
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
    **KV_BACKWARD,
    **EXPERT_BACKWARD,
}
