"""`backward`: a program run in reverse over the values of one step, in NumPy float32.

Each op passes on what a small change of its result would do to what it read. It is for measuring how much weights
matter, not for training: gradients of matrices are given as their two factors, and those of vectors not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import (
    Activation,
    Add,
    Attention,
    Embed,
    GatedAct,
    KvWrite,
    Linear,
    Op,
    Program,
    RmsNorm,
    Rope,
    Scale,
    Softcap,
    TakeRows,
    Tap,
)
from .reference_ops import Floats, State, activate

MatrixSeen = Callable[[str, Floats, Floats], None]
"""`seen(weight, g, x)`: the gradient of a matrix is `g.T @ x`, g [T, N], x [T, M]."""
RowsSeen = Callable[[str, NDArray[np.int32], Floats], None]
"""`seen(table, ids, g)`: row `ids[t]` of a table has the gradient `g[t]`, [T, D], summed where ids repeat."""

_STEP = np.float32(1 / 64)


@dataclass
class Reverse:
    """A step that was run, gradients by value name, and who is told of those of matrices and tables.

    A value that nobody needed has no gradient. Every sequence must have all its tokens in this step.
    """

    state: State
    matrix: MatrixSeen
    rows: RowsSeen
    grads: dict[str, Floats] = field(default_factory=dict)
    keys: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    """Gradients of the keys and values of a KV layer."""
    written: dict[int, KvWrite] = field(default_factory=dict)

    def add(self, name: str, grad: Floats) -> None:
        """One more way in which a value matters."""
        self.grads[name] = self.grads[name] + grad if name in self.grads else grad


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
    reverse.matrix(op.weight, grad, reverse.state.values[op.x])
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


def kv_write(op: KvWrite, reverse: Reverse, grad: None) -> None:
    """What attention found out about keys and values."""
    if op.layer in reverse.keys:
        keys, values = reverse.keys.pop(op.layer)
        reverse.add(op.k, keys)
        reverse.add(op.v, values)


def attention(op: Attention, reverse: Reverse, grad: Floats) -> None:
    """Each sequence by itself."""
    state, batch = reverse.state, reverse.state.batch
    write = reverse.written[op.layer]
    q, k, v = state.values[op.q], state.values[write.k], state.values[write.v]
    found = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for sequence in range(len(batch.seq_len)):
        mine = np.flatnonzero(batch.seq_of == sequence)
        parts = _attend(op, q[mine], k[mine], v[mine], batch.positions[mine], grad[mine])
        for whole, part in zip(found, parts, strict=True):
            whole[mine] = part.reshape(len(mine), -1)
    reverse.add(op.q, found[0])
    before = reverse.keys.get(op.layer)
    reverse.keys[op.layer] = found[1:] if before is None else (before[0] + found[1], before[1] + found[2])


def _attend(
    op: Attention, q: Floats, k: Floats, v: Floats, positions: NDArray[np.int32], grad: Floats
) -> tuple[Floats, Floats, Floats]:
    """q[n, K, G, C] k[n, K, C] v[n, K, Cv] as rows; gradients of the same shapes."""
    q = q.reshape(len(q), op.kv_heads, -1, op.key_size)
    k, v = k.reshape(len(k), op.kv_heads, op.key_size), v.reshape(len(v), op.kv_heads, op.value_size)
    grad = grad.reshape(len(q), op.kv_heads, -1, op.value_size)
    scores = np.einsum("tkgc,skc->tkgs", q, k, optimize=True) * np.float32(op.scale)
    slope = np.float32(1)
    if op.softcap is not None:
        bent = np.tanh(scores / np.float32(op.softcap))
        scores, slope = np.float32(op.softcap) * bent, 1 - bent * bent
    distance = positions[:, None] - positions[None, :]
    hidden = (distance < 0) | (distance >= (op.window or np.iinfo(np.int32).max))
    scores = np.where(hidden[:, None, None, :], np.float32(-np.inf), scores)
    share = np.exp(scores - scores.max(axis=-1, keepdims=True))
    share /= share.sum(axis=-1, keepdims=True)
    of_share = np.einsum("tkgc,skc->tkgs", grad, v, optimize=True)
    of_scores = share * (of_share - (share * of_share).sum(axis=-1, keepdims=True)) * slope * np.float32(op.scale)
    return (
        np.einsum("tkgs,skc->tkgc", of_scores, k, optimize=True),
        np.einsum("tkgs,tkgc->skc", of_scores, q, optimize=True),
        np.einsum("tkgs,tkgc->skc", share, grad, optimize=True),
    )


def gated_act(op: GatedAct, reverse: Reverse, grad: Floats) -> None:
    """To both factors."""
    gate, up = reverse.state.values[op.gate], reverse.state.values[op.up]
    reverse.add(op.gate, grad * up * slope_of(op.act, gate))
    reverse.add(op.up, grad * activate(op.act, gate))


def slope_of(kind: Activation, x: Floats) -> Floats:
    """By a small step to either side, which serves every activation there is."""
    return (activate(kind, x + _STEP) - activate(kind, x - _STEP)) / (2 * _STEP)


def add(op: Add, reverse: Reverse, grad: Floats) -> None:
    """To both."""
    reverse.add(op.a, grad)
    reverse.add(op.b, grad)


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


def tap(op: Tap, reverse: Reverse, grad: Floats) -> None:
    """Nothing comes of it."""


BACKWARD: dict[type[Op], Callable[[Any, Reverse, Any], None]] = {
    Embed: embed,
    RmsNorm: rms_norm,
    Linear: linear,
    Rope: rope,
    KvWrite: kv_write,
    Attention: attention,
    GatedAct: gated_act,
    Add: add,
    TakeRows: take_rows,
    Scale: scale,
    Softcap: softcap,
    Tap: tap,
}
