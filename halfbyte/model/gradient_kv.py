"""Ops on the KV pages in reverse, in NumPy float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import Attention, KvWrite, Op, ShortConv
from .reference_state import Floats
from .reverse import Reverse


def kv_write(op: KvWrite, reverse: Reverse, grad: None) -> None:
    """What attention found out about keys and values."""
    if op.layer in reverse.keys:
        keys, values = reverse.keys.pop(op.layer)
        reverse.add(op.v, values)
        if op.k is not None:
            reverse.add(op.k, keys)


def attention(op: Attention, reverse: Reverse, grad: Floats) -> None:
    """Each sequence by itself."""
    state, batch = reverse.state, reverse.state.batch
    write = reverse.written[op.layer]
    assert write.k is not None, "attention has keys"
    q, k, v = state.values[op.q], state.values[write.k], state.values[write.v]
    sinks = None if op.sinks is None else state.weight(op.sinks)[0]
    found = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for sequence in range(len(batch.seq_len)):
        mine = np.flatnonzero(batch.seq_of == sequence)
        parts = _attend(op, q[mine], k[mine], v[mine], sinks, batch.positions[mine], grad[mine])
        for whole, part in zip(found, parts, strict=True):
            whole[mine] = part.reshape(len(mine), -1)
    reverse.add(op.q, found[0])
    before = reverse.keys.get(op.layer)
    reverse.keys[op.layer] = found[1:] if before is None else (before[0] + found[1], before[1] + found[2])


def _attend(
    op: Attention,
    q: Floats,
    k: Floats,
    v: Floats,
    sinks: Floats | None,
    positions: NDArray[np.int32],
    grad: Floats,
) -> tuple[Floats, Floats, Floats]:
    """q[n, K, G, C] k[n, K, C] v[n, K, Cv] as rows, sinks[H]; gradients of the same shapes but for the sinks."""
    q = q.reshape(len(q), op.kv_heads, -1, op.key_size)
    k, v = k.reshape(len(k), op.kv_heads, op.key_size), v.reshape(len(v), op.kv_heads, op.value_size)
    grad = grad.reshape(len(q), op.kv_heads, -1, op.value_size)
    scores = np.einsum("tkgc,skc->tkgs", q, k, optimize=True) * np.float32(op.scale)
    slope = np.float32(1)
    if op.softcap is not None:
        bent = np.tanh(scores / np.float32(op.softcap))
        scores, slope = np.float32(op.softcap) * bent, 1 - bent * bent
    distance = positions[:, None] - positions[None, :]
    hidden = ((distance < 0) & op.causal) | (distance >= (op.window or np.iinfo(np.int32).max))
    scores = np.where(hidden[:, None, None, :], np.float32(-np.inf), scores)
    own = np.float32(-np.inf) if sinks is None else sinks.reshape(1, op.kv_heads, -1, 1)
    largest = np.maximum(scores.max(axis=-1, keepdims=True), own)
    share = np.exp(scores - largest)
    share /= share.sum(axis=-1, keepdims=True) + np.exp(own - largest)
    of_share = np.einsum("tkgc,skc->tkgs", grad, v, optimize=True)
    of_scores = share * (of_share - (share * of_share).sum(axis=-1, keepdims=True)) * slope * np.float32(op.scale)
    return (
        np.einsum("tkgs,skc->tkgc", of_scores, k, optimize=True),
        np.einsum("tkgs,tkgc->skc", of_scores, q, optimize=True),
        np.einsum("tkgs,tkgc->skc", share, grad, optimize=True),
    )


def short_conv(op: ShortConv, reverse: Reverse, grad: Floats) -> None:
    """Each tap to the value it looked at."""
    state, batch = reverse.state, reverse.state.batch
    weight = state.weight(op.weight)
    found = np.zeros_like(grad)
    for sequence in range(len(batch.seq_len)):
        mine = np.flatnonzero(batch.seq_of == sequence)
        for j in range(min(op.taps, len(mine))):
            found[mine[: len(mine) - j]] += weight[:, op.taps - 1 - j] * grad[mine[j:]]
    reverse.keys[op.layer] = (np.zeros((len(grad), 0), np.float32), found)


KV_BACKWARD: dict[type[Op], Callable[[Any, Reverse, Any], None]] = {
    KvWrite: kv_write,
    Attention: attention,
    ShortConv: short_conv,
}
