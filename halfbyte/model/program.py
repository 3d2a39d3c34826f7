"""`Program`: a model as a short list of typed ops over named values.

Every value is a float32 matrix, one row a token (or, after `TakeRows`, one row an asked-for token). A value is written
once and never changed, so a backend may reuse its memory as soon as the last reader has run. Weights are named as in
the GGUF file and looked up by the backend. Adding an op means a class here, a few lines in `reference.py` and a
lowering in each backend; adding an architecture means none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Activation = Literal["silu", "gelu_tanh", "gelu", "relu"]


@dataclass(frozen=True)
class RopeTable:
    """Rotary embedding: how pairs are laid out and how fast each turns.

    `kind` "norm" turns neighbours (2i, 2i+1), "neox" turns halves (i, i + n/2) of the first `2 * len(inv_freq)`
    channels of a head; later channels pass. The angle of pair i at position p is `p * inv_freq[i]`; both cosine and
    sine are multiplied by `magnitude` (1 except for YaRN).
    """

    kind: Literal["norm", "neox"]
    inv_freq: tuple[float, ...]
    magnitude: float = 1.0


@dataclass(frozen=True)
class Op:
    """Base of all ops. `READS` and `WRITES` name the fields that hold value names, `WEIGHTS` those of weights."""

    READS: ClassVar[tuple[str, ...]] = ()
    WRITES: ClassVar[tuple[str, ...]] = ("out",)
    WEIGHTS: ClassVar[tuple[str, ...]] = ()

    def reads(self) -> list[str]:
        """Names of the values this op reads."""
        return [getattr(self, name) for name in self.READS]

    def writes(self) -> list[str]:
        """Names of the values this op writes."""
        return [getattr(self, name) for name in self.WRITES]

    def weights(self) -> list[str]:
        """Names of the weights this op reads; absent optional ones left out."""
        return [value for name in self.WEIGHTS if (value := getattr(self, name)) is not None]


@dataclass(frozen=True)
class Embed(Op):
    """`out[t] = scale * table[ids[t]]`, table [V, D]."""

    table: str
    out: str
    scale: float = 1.0
    WEIGHTS = ("table",)


@dataclass(frozen=True)
class RmsNorm(Op):
    """`out = x / sqrt(mean(x^2) + eps) * weight` over each of `groups` equal parts of a row; the weight is shared."""

    x: str
    weight: str
    out: str
    eps: float
    groups: int = 1
    READS = ("x",)
    WEIGHTS = ("weight",)


@dataclass(frozen=True)
class Linear(Op):
    """`out = x @ weight.T + bias`, weight [N, M], bias [N]."""

    x: str
    weight: str
    out: str
    bias: str | None = None
    READS = ("x",)
    WEIGHTS = ("weight", "bias")


@dataclass(frozen=True)
class Rope(Op):
    """Turn each of `heads` heads of a row by its token's position."""

    x: str
    out: str
    heads: int
    table: RopeTable
    READS = ("x",)


@dataclass(frozen=True)
class KvWrite(Op):
    """Store keys [T, K*C] and values [T, K*Cv] of the step's tokens into their slots of KV layer `layer`."""

    k: str
    v: str
    layer: int
    READS = ("k", "v")
    WRITES = ()


@dataclass(frozen=True)
class Attention(Op):
    """Causal attention of each token over its sequence's slots of KV layer `layer`, its own included.

    Scores are `scale * q.k`; with `softcap` c they become `c * tanh(score / c)`. With `window` w a token at position p
    sees positions p - w + 1 .. p only.
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
    READS = ("q",)


@dataclass(frozen=True)
class GatedAct(Op):
    """`out = act(gate) * up`."""

    gate: str
    up: str
    out: str
    act: Activation
    READS = ("gate", "up")


@dataclass(frozen=True)
class Add(Op):
    """`out = a + b`."""

    a: str
    b: str
    out: str
    READS = ("a", "b")


@dataclass(frozen=True)
class TakeRows(Op):
    """`out[r] = x[logit_rows[r]]`: from here on rows are asked-for tokens."""

    x: str
    out: str
    READS = ("x",)


@dataclass(frozen=True)
class Scale(Op):
    """`out = factor * x`."""

    x: str
    out: str
    factor: float
    READS = ("x",)


@dataclass(frozen=True)
class Softcap(Op):
    """`out = cap * tanh(x / cap)`."""

    x: str
    out: str
    cap: float
    READS = ("x",)


@dataclass(frozen=True)
class Tap(Op):
    """Keep `x` until the step ends, for `Executable.tapped`."""

    x: str
    READS = ("x",)
    WRITES = ()


@dataclass(frozen=True)
class KvLayer:
    """Shape of one KV layer: `kv_heads` heads of `key_size` and `value_size` channels; `window` as in `Attention`."""

    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None


@dataclass(frozen=True)
class Program:
    """Ops in order, the width of every value, the KV layers, and the value that holds the logits.

    Checked when built (`check` in `model/check.py`): every shape agrees, every value is written once and before it is
    read, every KV layer is written before it is attended to.
    """

    ops: tuple[Op, ...]
    widths: dict[str, int]
    kv_layers: tuple[KvLayer, ...]
    logits: str
    vocab_size: int

    def weight_names(self) -> list[str]:
        """Every weight the ops read, in order of first use."""
        return list(dict.fromkeys(name for op in self.ops for name in op.weights()))

    def taps(self) -> list[str]:
        """Every value that is kept until the end of a step."""
        return [op.x for op in self.ops if isinstance(op, Tap)]

    def describe(self) -> Iterator[str]:
        """One line an op, for people."""
        for op in self.ops:
            parts = (f"{f.name}={getattr(op, f.name)!r}" for f in fields(op))
            yield f"{type(op).__name__}({', '.join(parts)})"


@dataclass(frozen=True)
class StepBatch:
    """The whole contract between scheduling and compute: plain int32 arrays.

    Shapes: `ids[T] positions[T] seq_of[T] slots[T]`, `page_table[S, max_pages]`, `seq_len[S]`, `logit_rows[R]`.
    Tokens of one sequence are neighbours in order of position. `slots[t] == page * page_len + offset`; `seq_len[s]`
    counts the tokens of sequence s after this step. Page 0 is as good as any other; unused page_table entries are -1.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    seq_of: NDArray[np.int32]
    slots: NDArray[np.int32]
    page_table: NDArray[np.int32]
    seq_len: NDArray[np.int32]
    logit_rows: NDArray[np.int32]
