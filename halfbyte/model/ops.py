"""Ops that treat every row by itself: what each computes, in words; in NumPy in `reference_ops.py`.

`T` rows stand for tokens, after `TakeRows` for asked-for tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Activation = Literal["silu", "gelu_tanh", "gelu", "relu"]
Gate = Literal["silu", "gelu_tanh", "gelu", "relu", "swiglu_oai"]


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
        """Names of the values this op reads; absent optional ones left out."""
        return [value for name in self.READS if (value := getattr(self, name)) is not None]

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
class EmbedPositions(Op):
    """`out[t] = table[positions[t]]`, table [`length`, D]; no position is `length` or more."""

    table: str
    out: str
    length: int
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
class LayerNorm(Op):
    """`out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias` over each row."""

    x: str
    weight: str
    out: str
    eps: float
    bias: str | None = None
    READS = ("x",)
    WEIGHTS = ("weight", "bias")


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
class GatedAct(Op):
    """`out = act(gate) * up`; "swiglu_oai" is `g * sigmoid(1.702 g) * (up + 1)`, g at most 7, up from -7 to 7."""

    gate: str
    up: str
    out: str
    act: Gate
    READS = ("gate", "up")


@dataclass(frozen=True)
class Act(Op):
    """`out = act(x)`."""

    x: str
    out: str
    act: Activation
    READS = ("x",)


@dataclass(frozen=True)
class Mul(Op):
    """`out = a * b`."""

    a: str
    b: str
    out: str
    READS = ("a", "b")


@dataclass(frozen=True)
class AddVector(Op):
    """`out = x + vector`, the same vector for every row."""

    x: str
    vector: str
    out: str
    READS = ("x",)
    WEIGHTS = ("vector",)


@dataclass(frozen=True)
class Add(Op):
    """`out = a + b`."""

    a: str
    b: str
    out: str
    READS = ("a", "b")


@dataclass(frozen=True)
class AddScaled(Op):
    """`out[t] = a[t] + (s * factor) * b[t]`, s what the token's sequence asks of `adapter`; exactly `a[t]` for s = 0.

    `asked`: rows stand for asked-for tokens. What `b` holds counts for nothing where s is 0.
    """

    a: str
    b: str
    out: str
    adapter: int
    factor: float = 1.0
    asked: bool = False
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
class Receive(Op):
    """`out` as another share of the program made it; rows stand for tokens, with `asked` for asked-for ones."""

    out: str
    asked: bool = False


@dataclass(frozen=True)
class Tap(Op):
    """Keep `x` until the step ends, for `Executable.tapped`."""

    x: str
    READS = ("x",)
    WRITES = ()
