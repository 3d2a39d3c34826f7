"""Ops that write to the KV pages, or look at what earlier tokens left there."""

from __future__ import annotations

from dataclasses import dataclass

from .ops import Op


@dataclass(frozen=True)
class KvWrite(Op):
    """Store keys [T, K*C] and values [T, K*Cv] of the step's tokens into their slots of KV layer `layer`.

    Without keys, where the layer's `key_size` is 0: what a `ShortConv` looks back at.
    """

    k: str | None
    v: str
    layer: int
    READS = ("k", "v")
    WRITES = ()


@dataclass(frozen=True)
class Attention(Op):
    """Attention of each token over its sequence's slots of KV layer `layer` up to its own.

    Scores are `scale * q.k`; with `softcap` c they become `c * tanh(score / c)`. With `window` w a token at position p
    sees positions p - w + 1 .. p only. `sinks` [H] are scores, one a head, of something without a value that every
    token sees too. Where it is not `causal`, a token sees all slots of its sequence, and a step must have all of them.
    """

    q: str
    out: str
    layer: int
    heads: int
    kv_heads: int
    key_size: int
    value_size: int
    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks: str | None = None
    causal: bool = True
    READS = ("q",)
    WEIGHTS = ("sinks",)


@dataclass(frozen=True)
class ShortConv(Op):
    """`out[t] = sum_j weight[:, j] * v[t - taps + 1 + j]`: a filter of each channel by itself over the last values.

    weight [D, taps]; `v` are the values in the sequence's slots of KV layer `layer`, zero before the first.
    """

    weight: str
    out: str
    layer: int
    taps: int
    WEIGHTS = ("weight",)
