"""What lowering produces: kernel calls whose operands name values, weights and KV layers instead of addresses."""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, replace

from ..model.program import RopeTable

QUANTIZED = "#q"
"""Suffix of the quantized form of a value; without it a name means float32 rows."""

ORDER = "#order"
"""Suffix of what a route's kernel finds out besides the route: which rows its experts get. See `dealing.py`."""

SHARED = "shared memory"
"""Name of the memory at `Shared` among the things calls write: two that use it must not run side by side."""


@dataclass(frozen=True)
class Ref:
    """Address of a value's rows; `part` "sums" is where a quantized form's records start.

    Of an order, "counters", "sources" and "places" are where these start.
    """

    value: str
    part: str = "rows"


@dataclass(frozen=True)
class Stride:
    """Bytes from one row of a value to the next."""

    value: str


@dataclass(frozen=True)
class Constant:
    """Address of a vector weight, padded to whole vectors."""

    weight: str


@dataclass(frozen=True)
class Packed:
    """Address of a packed matrix."""

    weight: str


@dataclass(frozen=True)
class FileRows:
    """Address of a weight's rows in the mapped file."""

    weight: str


@dataclass(frozen=True)
class Count:
    """Address of the number of rows a value has."""

    value: str


@dataclass(frozen=True)
class Kv:
    """Address of the keys or values of a KV layer."""

    layer: int
    part: str


@dataclass(frozen=True)
class Angles:
    """Address of the sines and cosines of a rope table; `part` "inv_freq" of its frequencies."""

    table: RopeTable
    part: str = "angles"


@dataclass(frozen=True)
class Scratch:
    """Address of `n_bytes` for each thread."""

    n_bytes: int


@dataclass(frozen=True)
class ScratchStride:
    """Bytes from one thread's scratch to the next: one for all kernels, as two may run side by side."""


@dataclass(frozen=True)
class Peaks:
    """Address of the largest logits of the row tiles."""


@dataclass(frozen=True)
class Scales:
    """Address of how much of an adapter each token of the step wants, or each asked-for one."""

    adapter: int
    asked: bool


@dataclass(frozen=True)
class Shared:
    """Address of memory in which threads put together what each computed of one row."""


Operand = (
    int
    | Ref
    | Stride
    | Constant
    | Packed
    | FileRows
    | Count
    | Kv
    | Angles
    | Scratch
    | ScratchStride
    | Scales
    | Shared
    | Peaks
)


@dataclass(frozen=True)
class Call:
    """One kernel call. `reads` and `writes` name value forms and KV layers: what barriers and memory are planned by.

    A step in which nobody wants the `adapter` of a call goes without the call, and one in which nobody wants any of
    `out_for` without its `out`. `op` is the number of the op that it computes, the first of several.
    """

    kernel: str
    layout: str
    operands: dict[str, Operand]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    adapter: int | None = None
    out_for: frozenset[int] = frozenset()
    op: int = 0

    def with_adapters(self, used: Collection[int]) -> Call | None:
        """What a step makes of it that wants these adapters and no other."""
        if self.adapter is not None and self.adapter not in used:
            return None
        if not self.out_for or not self.out_for.isdisjoint(used):
            return self
        out = self.operands["out"]
        assert isinstance(out, Ref)
        writes = tuple(name for name in self.writes if name != out.value)
        return replace(self, operands=self.operands | {"out": 0}, writes=writes)

    @property
    def label(self) -> str:
        """The kernel and the weight it reads, or else what it writes: for people."""
        weights = (o.weight for o in self.operands.values() if isinstance(o, Packed | FileRows | Constant))
        subject = next(weights, self.writes[0] if self.writes else "")
        if self.layout == "angles":  # their name is a number
            return self.kernel
        return f"{self.kernel} {subject.removesuffix('.weight').removesuffix(QUANTIZED)}"


def value_of(form: str) -> str:
    """The value that a form of it belongs to."""
    return form.removesuffix(QUANTIZED).removesuffix(ORDER)


def float_bits(x: float) -> int:
    """A float operand as kernels take it."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def angles_name(table: RopeTable) -> str:
    """Name of a rope table's angles among the things calls read and write."""
    return f"angles {hash(table)}"


def kv_name(layer: int) -> str:
    """Name of a KV layer among the things calls read and write."""
    return f"kv {layer}"
