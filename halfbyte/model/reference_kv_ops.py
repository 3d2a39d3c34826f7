"""What ops on the KV pages mean, in NumPy float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import Attention, KvWrite, Op, ShortConv
from .reference_state import Floats, State


def kv_write(op: KvWrite, state: State) -> None:
    """Rounded to what the pages hold."""
    values = state.values[op.v]
    keys = np.zeros((len(values), 0), np.float32) if op.k is None else state.values[op.k]
    state.kv.write(op.layer, state.batch.slots, keys, values)


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
        sinks = None if op.sinks is None else state.weight(op.sinks)[0]
        out[mine] = attend(op, q[mine], k, v, positions, np.arange(start, length), sinks)
    state.values[op.out] = out


def attend(
    op: Attention,
    q: Floats,
    k: Floats,
    v: Floats,
    positions: NDArray[np.int32],
    seen: NDArray[np.intp],
    sinks: Floats | None = None,
) -> Floats:
    """q[n, H*C] at `positions` over k[m, K, C], v[m, K, Cv] at positions `seen`, sinks[H]; gives [n, H*Cv]."""
    grouped = q.reshape(len(q), op.kv_heads, op.heads // op.kv_heads, op.key_size)
    scores = np.einsum("tkgc,skc->tkgs", grouped, k) * np.float32(op.scale)
    if op.softcap is not None:
        scores = np.float32(op.softcap) * np.tanh(scores / np.float32(op.softcap))
    distance: NDArray[np.intp] = positions[:, None] - seen[None, :]
    hidden = np.asarray((distance < 0) & op.causal)
    if op.window is not None:
        hidden |= distance >= op.window
    scores = np.where(hidden[:, None, None, :], np.float32(-np.inf), scores)
    largest, unseen = scores.max(axis=-1, keepdims=True), np.float32(0)
    if sinks is not None:
        own = sinks.reshape(1, op.kv_heads, -1, 1)
        largest = np.maximum(largest, own)
        unseen = np.exp(own - largest)
    weight = np.exp(scores - largest)
    weight /= weight.sum(axis=-1, keepdims=True) + unseen
    # A slot that nobody may see can hold anything, NaN included, which zero weight would not hide.
    visible = np.where(np.all(hidden, axis=0, keepdims=True).T[:, :, None], np.float32(0), v)
    mixed: Floats = np.einsum("tkgs,skc->tkgc", weight, visible)
    return mixed.reshape(len(q), op.heads * op.value_size)


def short_conv(op: ShortConv, state: State) -> None:
    """Each sequence by itself, over the values as they are kept."""
    batch, weight = state.batch, state.weight(op.weight)
    out = np.zeros((len(batch.ids), len(weight)), np.float32)
    for sequence, length in enumerate(batch.seq_len):
        mine = np.flatnonzero(batch.seq_of == sequence)
        if len(mine) == 0:
            continue
        positions = batch.positions[mine]
        start = max(0, int(positions.min()) - op.taps + 1)
        _, kept = state.kv.read(op.layer, batch.page_table[sequence], start, int(length))
        before = np.zeros((op.taps - 1, len(weight)), np.float32)
        line = np.concatenate([before, kept.reshape(len(kept), -1)])  # position p stands at p - start + taps - 1
        for j in range(op.taps):
            out[mine] += weight[:, j] * line[positions - start + j]
    state.values[op.out] = out


KV_OPS: dict[type[Op], Callable[[Any, State], None]] = {KvWrite: kv_write, Attention: attention, ShortConv: short_conv}
