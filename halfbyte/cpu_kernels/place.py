"""Memory for the values of lowered calls, barriers between calls, and the words of the instructions.

A value's memory is used again once its last reader has run. Two calls need a barrier between them when one writes
memory that the other touches; calls without one run into each other, so a thread that finds no more rows of the query
matrix goes on with the key matrix.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.program import Embed, Receive, RopeTable
from .arena import Arena, rounded
from .calls import (
    ORDER,
    QUANTIZED,
    Angles,
    Call,
    Constant,
    Count,
    FileRows,
    Kv,
    Operand,
    Packed,
    Peaks,
    Ref,
    Scales,
    Scratch,
    ScratchStride,
    Shared,
    Stride,
    value_of,
)
from .dealing import counters_at, order_bytes, places_at, sources_at
from .instruction import BARRIER, BYTES, KERNEL, LAYOUTS, PEAK_ROWS, WORDS, state
from .loader import Kernels
from .lower import Lowering
from .packing import PackedWeight

LOGITS = "logits memory"
"""The one value whose memory is the caller's."""


PARTS = {"counters": counters_at, "sources": sources_at, "places": places_at}
"""Where the parts of an order begin."""


def row_bytes(width: int, quantized: bool) -> int:
    """Bytes from row to row: whole groups of 32 columns, and an odd number of cache lines.

    Rows a large power of two apart would all fall into the same few lines of the cache.
    """
    n_bytes = -(-width // 32) * (64 if quantized else 128)
    lines = -(-n_bytes // 64)
    return 64 * (lines | 1)


def value_bytes(width: int, quantized: bool, rows: int) -> int:
    """Bytes of a value's form: a quantized row has a record of 16 bytes a group of 32 behind all rows."""
    stride = row_bytes(width, quantized)
    return rounded(rows * stride + (rows * (stride // 4) if quantized else 0))


@dataclass
class Plan:
    """Which piece of memory each value form gets. Pieces are reused by size."""

    lowering: Lowering
    piece_of: dict[str, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._check_logits()
        calls, free = self.lowering.calls, list[int]()
        last = self._last_uses()
        for name in self._from_outside():
            self._give(name, free)
        for index, call in enumerate(calls):
            for name in call.writes:
                if self.is_value(name) and self.root(name) not in self.piece_of:
                    self._give(self.root(name), free)
            roots = {self.root(name) for name in (*call.reads, *call.writes) if self.is_value(name)}
            free.extend(self.piece_of[name] for name in sorted(roots) if last[name] == index)

    def _check_logits(self) -> None:
        """Rows of logits stand side by side: who writes them must spare what lies behind, and read rows alike."""
        for call in self.lowering.calls:
            if any(self.root(name) == self.logits for name in call.writes):
                alike = all(self.root(name) == self.logits for name in call.reads)
                plain = call.layout in ("linear", "norm", "take_rows", "add_scaled")
                assert plain or (call.layout == "elementwise" and alike), f"{call.kernel} cannot write the logits"

    def is_value(self, name: str) -> bool:
        """Whether a name stands for memory planned here."""
        return value_of(name) in self.lowering.program.widths and self.root(name) != self.logits

    @property
    def logits(self) -> str:
        """Name of the value that lies in the caller's memory."""
        return self.lowering.program.logits

    def root(self, name: str) -> str:
        """The value whose memory `name` uses."""
        return self.lowering.root(name)

    def bytes_of(self, name: str) -> int:
        """Bytes a value form needs."""
        if name.endswith(ORDER):
            return rounded(order_bytes(*self.lowering.dealt_by(value_of(name))))
        width = self.lowering.program.widths[value_of(name)]
        return value_bytes(width, name.endswith(QUANTIZED), self.lowering.most_rows(name))

    def _from_outside(self) -> list[str]:
        """Values that the caller writes at any time before they are read: what it embeds or receives."""
        tables = self.lowering.tables
        return sorted(
            self.root(op.out)
            for op in self.lowering.program.ops
            if isinstance(op, Receive) or (isinstance(op, Embed) and op.table not in tables)
        )

    def _last_uses(self) -> dict[str, int]:
        calls = self.lowering.calls
        last = {self.root(name): i for i, call in enumerate(calls) for name in (*call.reads, *call.writes)}
        return last | dict.fromkeys(map(self.root, self.lowering.program.taps()), len(calls))

    def _give(self, name: str, free: list[int]) -> None:
        size = self.bytes_of(name)
        fitting = [piece for piece in free if self.sizes[piece] >= size]
        if fitting:
            piece = min(fitting, key=lambda piece: self.sizes[piece])
            free.remove(piece)
        else:
            piece = len(self.sizes)
            self.sizes.append(size)
        self.piece_of[name] = piece

    def place_of(self, name: str) -> str:
        """Name of the memory that a call's read or write touches: what barriers are planned by."""
        if self.is_value(name):
            return f"piece {self.piece_of[self.root(name)]}"
        return LOGITS if self.root(name) == self.logits else name


def barriers(plan: Plan, calls: Sequence[Call]) -> list[bool]:
    """Whether each call must be finished by all threads before the next begins."""
    result = [False] * len(calls)
    reads: set[str] = set()
    writes: set[str] = set()
    for index, call in enumerate(calls):
        own_reads = {plan.place_of(name) for name in call.reads}
        own_writes = {plan.place_of(name) for name in call.writes}
        if (own_reads | own_writes) & writes or own_writes & reads:
            result[index - 1] = True
            reads, writes = set(), set()
        reads |= own_reads
        writes |= own_writes
    return result


@dataclass
class Placed:
    """Everything a program needs in memory, and its instructions."""

    plan: Plan
    arena: Arena
    pieces: list[int]
    constants: Mapping[str, int]
    matrices: Mapping[str, PackedWeight]
    tables: Mapping[str, int]
    kv: Mapping[tuple[int, str], int]
    angles: Mapping[tuple[RopeTable, str], int]
    scratch: int
    scratch_stride: int
    shared: int
    state: int
    peaks: int
    scales: int
    calls: list[Call] = field(init=False)
    length: int = field(init=False)
    words: NDArray[np.int64] = field(init=False)
    """The `length` instructions of the program, and room behind them to select from rows of logits along with it."""
    logits_at: list[int] = field(default_factory=list)
    """Flat indices of the words that hold the address of the caller's logits."""

    def __post_init__(self) -> None:
        self.calls = self.plan.lowering.calls

    def with_adapters(self, used: Collection[int], kernels: Kernels) -> Placed:
        """The same memory, and the instructions of a step that wants these adapters and no other."""
        part = copy(self)
        calls = (call.with_adapters(used) for call in self.plan.lowering.calls)
        part.calls = [call for call in calls if call is not None]
        part.assemble(kernels)
        return part

    def resolve(self, operand: Operand) -> int:
        """The word of an operand."""
        match operand:
            case int():
                return operand
            case Ref(value, part):
                return self._address(value, part)
            case Stride(value):
                return self._stride(value)
            case Count(value):
                route = self.plan.lowering.route_of(value)
                if route is not None:
                    return self._address(route.out + ORDER, "rows")
                return self.state + state("rows" if self.plan.lowering.per_row(value) else "tokens")
            case Constant(weight):
                return self.constants[weight]
            case FileRows(weight):
                return self.tables[weight]
            case Packed(weight):
                return self.matrices[weight].address
            case Kv(layer, part):
                return self.kv[layer, part]
            case Angles(table, part):
                return self.angles[table, part]
            case Scratch():
                return self.scratch
            case Peaks():
                return self.peaks
            case Scales(adapter, asked):
                return self.scales + 4 * self.plan.lowering.max_tokens * (2 * adapter + asked)
            case ScratchStride():
                return self.scratch_stride
            case Shared():
                return self.shared

    def _address(self, value: str, part: str) -> int:
        if self.plan.root(value) == self.plan.logits:
            return 0
        address, lowering = self.pieces[self.plan.piece_of[self.plan.root(value)]], self.plan.lowering
        if part == "sums":
            return address + lowering.most_rows(value) * self._stride(value)
        return address + (0 if part == "rows" else PARTS[part](*lowering.dealt_by(value_of(value))))

    def _stride(self, value: str) -> int:
        width = self.plan.lowering.program.widths[value_of(value)]
        if self.plan.root(value) == self.plan.logits:
            return 4 * width
        return row_bytes(width, value.endswith(QUANTIZED))

    def assemble(self, kernels: Kernels) -> None:
        """Write the instructions."""
        calls = self.calls
        self.length = len(calls)
        self.words = np.zeros((self.length + PEAK_ROWS, WORDS), np.int64)
        for row, call, barrier in zip(self.words[: self.length], calls, barriers(self.plan, calls), strict=True):
            row[KERNEL // 8], row[BARRIER // 8] = kernels[call.kernel], barrier
            operands = {name: self.resolve(operand) for name, operand in call.operands.items()}
            words = LAYOUTS[call.layout].words(operands)
            row[3 : 3 + len(words)] = words
        self.logits_at = [
            index * WORDS + 3 + LAYOUTS[call.layout].names.index(name)
            for index, call in enumerate(calls)
            for name, operand in call.operands.items()
            if isinstance(operand, Ref) and self.plan.root(operand.value) == self.plan.logits
        ]

    @property
    def barriers(self) -> list[bool]:
        """Behind which instructions all threads meet."""
        return [bool(word) for word in self.words[: self.length, BARRIER // 8]]

    def view(self, value: str) -> NDArray[np.float32]:
        """f32[rows, stride / 4]: the memory of a value that the caller writes or reads."""
        shape = self.plan.lowering.most_rows(value), self._stride(value) // 4
        view: Any = self.arena.view(self._address(value, "rows"), shape, np.float32)
        return view  # type: ignore[no-any-return]


assert BYTES == 8 * WORDS
