"""What each op means, in NumPy float32: one function an op, found through `OPS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .backend import Weight
from .program import (
    Activation,
    Add,
    Attention,
    Embed,
    GatedAct,
    KvWrite,
    Linear,
    Op,
    RmsNorm,
    Rope,
    Scale,
    Softcap,
    StepBatch,
    TakeRows,
    Tap,
)
from .reference_kv import PagedKv

Floats = NDArray[np.float32]


@dataclass
class State:
    """What ops work on: the step, the values so far, the KV pages, and weights decoded when first used."""

    batch: StepBatch
    kv: PagedKv
    weights: Mapping[str, Weight]
    decoded: dict[str, Floats]
    values: dict[str, Floats] = field(default_factory=dict)

    def weight(self, name: str) -> Floats:
        """f32[N, M]."""
        if name not in self.decoded:
            self.decoded[name] = self.weights[name].decode()
        return self.decoded[name]


def embed(op: Embed, state: State) -> None:
    """Rows of the table, scaled; only the rows that are asked for are decoded."""
    table = state.weights[op.table]
    rows = table.format.decode(table.data[state.batch.ids])
    state.values[op.out] = rows * np.float32(op.scale)


def rms_norm(op: RmsNorm, state: State) -> None:
    """Mean of squares over each group, in float32."""
    x = state.values[op.x]
    # Not -1: between two chunks of a prompt no row is asked for, and 0 rows do not tell their width.
    grouped = x.reshape(len(x), op.groups, x.shape[1] // op.groups)
    mean = np.mean(grouped * grouped, axis=-1, keepdims=True, dtype=np.float32)
    normed = (grouped / np.sqrt(mean + np.float32(op.eps))).astype(np.float32, copy=False)
    state.values[op.out] = (normed * state.weight(op.weight)).reshape(x.shape)


def linear(op: Linear, state: State) -> None:
    """One matrix product."""
    out = state.values[op.x] @ state.weight(op.weight).T
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


def kv_write(op: KvWrite, state: State) -> None:
    """Rounded to what the pages hold."""
    state.kv.write(op.layer, state.batch.slots, state.values[op.k], state.values[op.v])


def attention(op: Attention, state: State) -> None:
    """Each sequence by itself: its tokens of this step against all its slots that one of them may see."""
    batch = state.batch
    q = state.values[op.q]
    out = np.zeros((len(q), op.heads * op.value_size), np.float32)
    for sequence, length in enumerate(batch.seq_len):
        mine = np.flatnonzero(batch.seq_of == sequence)
        if len(mine) == 0:
            continue
        positions = batch.positions[mine]
        start = 0 if op.window is None else max(0, int(positions.min()) - op.window + 1)
        k, v = state.kv.read(op.layer, batch.page_table[sequence], start, int(length))
        out[mine] = attend(op, q[mine], k, v, positions, np.arange(start, length))
    state.values[op.out] = out


def attend(
    op: Attention, q: Floats, k: Floats, v: Floats, positions: NDArray[np.int32], seen: NDArray[np.intp]
) -> Floats:
    """q[n, H*C] at `positions` over k[m, K, C], v[m, K, Cv] at positions `seen`; gives [n, H*Cv]."""
    grouped = q.reshape(len(q), op.kv_heads, op.heads // op.kv_heads, op.key_size)
    scores = np.einsum("tkgc,skc->tkgs", grouped, k) * np.float32(op.scale)
    if op.softcap is not None:
        scores = np.float32(op.softcap) * np.tanh(scores / np.float32(op.softcap))
    distance: NDArray[np.intp] = positions[:, None] - seen[None, :]
    hidden = np.asarray(distance < 0)
    if op.window is not None:
        hidden |= distance >= op.window
    scores = np.where(hidden[:, None, None, :], np.float32(-np.inf), scores)
    weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    # A slot that nobody may see can hold anything, NaN included, which zero weight would not hide.
    visible = np.where(np.all(hidden, axis=0, keepdims=True).T[:, :, None], np.float32(0), v)
    mixed: Floats = np.einsum("tkgs,skc->tkgc", weight, visible)
    return mixed.reshape(len(q), op.heads * op.value_size)


def gated_act(op: GatedAct, state: State) -> None:
    """The gate goes through the activation, then both are multiplied."""
    state.values[op.out] = activate(op.act, state.values[op.gate]) * state.values[op.up]


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


def take_rows(op: TakeRows, state: State) -> None:
    """Rows in the order they are asked for."""
    state.values[op.out] = state.values[op.x][state.batch.logit_rows]


def scale(op: Scale, state: State) -> None:
    """By one factor."""
    state.values[op.out] = state.values[op.x] * np.float32(op.factor)


def softcap(op: Softcap, state: State) -> None:
    """Squeezed smoothly into -cap .. cap."""
    state.values[op.out] = np.float32(op.cap) * np.tanh(state.values[op.x] / np.float32(op.cap))


def tap(op: Tap, state: State) -> None:
    """Every value is there until the step ends anyway."""


OPS: dict[type[Op], Callable[[Any, State], None]] = {
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
