"""Kernel calls of a program: what is launched, on which values, before anything has a place in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Form = Literal["rows", "planes", "records", "halves", "half_scales"]
"""Forms of a value: floats; bytes in two planes with their records, for integer products; halves with a scale a row."""


@dataclass(frozen=True)
class Sizes:
    """What the grids of a step are made for; how many there really are is in `Step`, and never more."""

    tokens: int
    rows: int
    sequences: int


@dataclass(frozen=True)
class Ref:
    """Address of a value in one of its forms."""

    value: str
    form: Form = "rows"


@dataclass(frozen=True)
class Stride:
    """Floats from one row of a value to the next."""

    value: str


@dataclass(frozen=True)
class Count:
    """Address of the number of tokens of this step, or of asked-for ones, i32."""

    asked: bool


@dataclass(frozen=True)
class Packed:
    """Address of a packed matrix."""

    weight: str


@dataclass(frozen=True)
class Vector:
    """Address of a weight as floats."""

    weight: str


@dataclass(frozen=True)
class Data:
    """Address of constant bytes."""

    content: bytes


@dataclass(frozen=True)
class Pages:
    """Address of the KV pages."""


@dataclass(frozen=True)
class StepAt:
    """Address of the `Step` on the device."""


@dataclass(frozen=True)
class Scratch:
    """Address of memory that a call may use until the next one runs; `n_bytes` of the sizes of a step."""

    n_bytes: Callable[[Sizes], int] = field(compare=False)
    name: str = ""


Operand = int | float | Ref | Stride | Count | Packed | Vector | Data | Pages | StepAt | Scratch
Grid = Callable[[Sizes], tuple[int, int, int]]
Kernel = str | Callable[[Sizes], str]
Shared = int | Callable[[Sizes], int]
"""Which instance of a template runs, and what it needs, may follow from the sizes; the bits of the results may not."""


@dataclass(frozen=True)
class Call:
    """A launch with operands that have no address yet; `reads` and `writes` are values."""

    kernel: Kernel
    grid: Grid
    threads: int
    operands: tuple[Operand, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    shared: Shared = 0


@dataclass(frozen=True)
class Multiply:
    """A product by the library: halves `x` [T, columns] and `weight` [rows, columns] to floats `out` [T, rows]."""

    x: Operand
    weight: Operand
    out: Operand
    columns: int
    rows: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
