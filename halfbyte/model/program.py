"""`Program`: a model as a short list of typed ops over named values.

Every value is a float32 matrix, one row a token (or, after `TakeRows`, one row an asked-for token). A value is written
once and never changed, so a backend may reuse its memory as soon as the last reader has run. Weights are named as in
the GGUF file and looked up by the backend. Adding an op means a class in `ops.py`, `kv_ops.py` or `expert_ops.py`, a
few lines in the `reference_*.py` of the same name, a rule in `check.py` and a lowering in each backend; adding an
architecture means none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .expert_ops import Combine, Dispatch, ExpertLinear, MoeRoute
from .kv_ops import Attention, KvWrite, ShortConv
from .ops import (
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
    RopeTable,
    Scale,
    Softcap,
    TakeRows,
    Tap,
)

__all__ = [
    "Act",
    "Activation",
    "Add",
    "AddScaled",
    "AddVector",
    "Attention",
    "Combine",
    "Dispatch",
    "Embed",
    "EmbedPositions",
    "ExpertLinear",
    "Gate",
    "GatedAct",
    "KvLayer",
    "KvWrite",
    "LayerNorm",
    "Linear",
    "MoeRoute",
    "Mul",
    "Op",
    "Program",
    "Receive",
    "RmsNorm",
    "Rope",
    "RopeTable",
    "Scale",
    "ShortConv",
    "Softcap",
    "StepBatch",
    "TakeRows",
    "Tap",
]


@dataclass(frozen=True)
class KvLayer:
    """Shape of one KV layer: `kv_heads` heads of `key_size` and `value_size` channels; `window` as in `Attention`.

    `exact`: kept as halves at least, whatever the type of the others.
    """

    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None
    exact: bool = False


@dataclass(frozen=True)
class Program:
    """Ops in order, the width of every value, the KV layers, and the value that holds the logits.

    Checked when built (`check` in `model/check.py`): every shape agrees, every value is written once and before it is
    read, every KV layer is written before it is attended to.

    The `logits` of an `encoder` are states of width D for whoever pools them, and a step has whole sequences. In a
    share of a program (`pieces.py`) they are "" where another share makes them.
    """

    ops: tuple[Op, ...]
    widths: dict[str, int]
    kv_layers: tuple[KvLayer, ...]
    logits: str
    vocab_size: int
    encoder: bool = False

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
    `adapter_scales` f32[S, A] says how much of each adapter a sequence wants; None is nothing of any.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    seq_of: NDArray[np.int32]
    slots: NDArray[np.int32]
    page_table: NDArray[np.int32]
    seq_len: NDArray[np.int32]
    logit_rows: NDArray[np.int32]
    adapter_scales: NDArray[np.float32] | None = None
