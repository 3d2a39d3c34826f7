"""From a share of a program to kernel calls: the walk over its ops, and what is known of its values.

What one op becomes stands in the `emit_*.py` files; where values lie is decided in `place.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UnsupportedError
from ..model import program as ir
from .calls import Call, Count, Form, Grid, Kernel, Multiply, Operand, Ref, Shared, Sizes, Stride
from .families import F32
from .packing import PackedMatrix
from .routed import plan_scratch, routed_values

if TYPE_CHECKING:
    from .kv_layout import KvLayout

SMALL = 512
"""Rows of a matrix of plain floats up to which it is multiplied as it is."""
Products = Literal["bytes", "halves"]
"""How matrices are multiplied: by kernels over packed weights, or by a library over halves made of them."""
Emit = Callable[["Lowering", Any], None]


@dataclass(frozen=True)
class Target:
    """What lowering knows of the device and of the steps that are to come."""

    multiprocessors: int
    shared_bytes: int
    max_context: int
    page_bytes: int
    kv: KvLayout


@dataclass
class Lowering:
    """Calls of the ops of a share's stage; `prompt` steps have sequences with many new tokens, others with few."""

    program: ir.Program
    packed: Mapping[str, PackedMatrix]
    target: Target
    prompt: bool
    products: Products
    calls: list[Call | Multiply] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._readers: dict[str, list[ir.Op]] = {}
        for op in self.program.ops:
            for name in op.reads():
                self._readers.setdefault(name, []).append(op)
        self._position = {id(op): i for i, op in enumerate(self.program.ops)}
        self._writer = {name: i for i, op in enumerate(self.program.ops) for name in op.writes()}
        self._asked = _asked_values(self.program)
        self._routed = routed_values(self.program)
        self._route = _routes(self.program)
        self._scores = {op.x for op in self.program.ops if isinstance(op, ir.MoeRoute)}
        self._done: set[int] = set()
        self._formed: set[str] = set()
        self._walked: set[int] = set()

    def walk(self, ops: Sequence[ir.Op], emit: Mapping[type[ir.Op], Emit]) -> list[Call | Multiply]:
        """The calls of ops that follow each other; raises `UnsupportedError` for one that no kernel computes."""
        start = len(self.calls)
        self._walked = {id(op) for op in ops}
        for op in ops:
            if id(op) in self._done:
                continue
            if type(op) not in emit:
                raise UnsupportedError(f"the GPU does not compute {type(op).__name__}; load with gpu_layers=0")
            emit[type(op)](self, op)
        return self.calls[start:]

    # --- what emit files ask and say ---

    def call(
        self,
        kernel: Kernel,
        grid: Grid,
        threads: int,
        operands: Sequence[Operand],
        reads: Sequence[str],
        writes: Sequence[str],
        *,
        shared: Shared = 0,
    ) -> None:
        """Append a call, and behind it one a value it writes whose other forms the kernel does not make."""
        self.calls.append(Call(kernel, grid, threads, tuple(operands), tuple(reads), tuple(writes), shared))
        for value in writes:
            self.make_forms(value)

    def make_forms(self, value: str) -> None:
        """Make of a value's rows what else is wanted of it, unless its kernel did."""
        if value in self._formed or not self._extra_forms(value):
            return
        self._formed.add(value)
        width = self.program.widths[value]
        operands = (Ref(value), Stride(value), width, self.count(value), *self._form_operands(value)[2:])
        shared = -(-width // 4) * 16
        self.calls.append(Call("make_forms", self.each_row(value), 512, operands, (value,), (value,), shared))

    def forms(self, value: str) -> tuple[Operand, ...]:
        """Rows, stride, planes, records, halves and half_scales of a value that the next kernel makes itself, 0 for a
        form that nobody reads.
        """
        self._formed.add(value)
        return self._form_operands(value)

    def asked(self, value: str) -> bool:
        """Whether rows of a value stand for asked-for tokens."""
        return value in self._asked

    def count(self, value: str) -> Operand:
        """Address of the number of rows of a value."""
        if value in self._routed:
            route = self._route[value]
            return plan_scratch(route.used, self.program.widths[route.x])
        return Count(self.asked(value))

    def routed_by(self, value: str) -> ir.MoeRoute:
        """The choice of experts that rows of a value were dealt out by."""
        return self._route[value]

    def most_rows(self, value: str, sizes: Sizes) -> int:
        """The most rows that a value has in steps of given sizes."""
        rows = sizes.rows if self.asked(value) else sizes.tokens
        return rows * self._routed.get(value, 1)

    def each_row(self, value: str, pieces: int = 1) -> Grid:
        """A block a piece of a row."""
        return lambda sizes: (self.most_rows(value, sizes), pieces, 1)

    def only_reader(self, value: str) -> ir.Op | None:
        """The op that alone reads a value, if there is one."""
        readers = self._readers.get(value, [])
        alone = len(readers) == 1 and value != self.program.logits and self.in_walk(readers[0])
        return readers[0] if alone else None

    def writer(self, value: str) -> ir.Op | None:
        """The op that writes a value."""
        return self.program.ops[self._writer[value]] if value in self._writer else None

    def readers(self, value: str) -> list[ir.Op]:
        """All ops that read a value."""
        return self._readers.get(value, [])

    def written_before(self, value: str, op: ir.Op) -> bool:
        """Whether a value is there when `op` runs."""
        return self._writer[value] < self._position[id(op)]

    def is_done(self, op: ir.Op) -> bool:
        """Whether another op's kernel computes `op` along."""
        return id(op) in self._done

    def in_walk(self, op: ir.Op) -> bool:
        """Whether an op is of the stage that is being lowered."""
        return id(op) in self._walked

    def done(self, op: ir.Op) -> None:
        """Another op's kernel computes `op` along."""
        self._done.add(id(op))

    def multiplies_bytes(self, op: ir.Op) -> bool:
        """Whether a product reads planes: of a matrix with a family of its own, unless it is the library's."""
        if not isinstance(op, ir.Linear | ir.ExpertLinear) or self.packed[op.weight].family.plain:
            return False
        return not self.multiplies_halves(op)

    def multiplies_halves(self, op: ir.Op) -> bool:
        """Whether a product is the library's: of all tokens' rows, unless it is small and halves would tip a choice."""
        if not isinstance(op, ir.Linear) or self.products == "bytes":
            return False
        return not (self.asked(op.x) or op.x in self._routed or self._chooses(op))

    def _chooses(self, op: ir.Linear) -> bool:
        """Whether a product gives scores of experts, or may be meant to: another backend may choose by them."""
        matrix = self.packed[op.weight]
        return op.out in self._scores or (matrix.family == F32 and matrix.rows <= SMALL)

    # --- forms ---

    def _extra_forms(self, value: str) -> set[Form]:
        readers = self._readers.get(value, [])
        found: set[Form] = set()
        if any(self.multiplies_bytes(op) for op in readers):
            found |= {"planes", "records"}
        if any(self.multiplies_halves(op) for op in readers):
            found |= {"halves", "half_scales"}
        return found

    def reads_rows(self, value: str) -> bool:
        """Whether somebody reads a value as floats."""
        if value == self.program.logits:
            return True
        readers = self._readers.get(value, [])
        return any(not (self.multiplies_bytes(op) or self.multiplies_halves(op)) for op in readers)

    def _form_operands(self, value: str) -> tuple[Operand, ...]:
        extra = self._extra_forms(value)
        rows: Operand = Ref(value) if self.reads_rows(value) or not extra else 0
        others: tuple[Form, ...] = ("planes", "records", "halves", "half_scales")
        return rows, Stride(value), *(Ref(value, form) if form in extra else 0 for form in others)


def _asked_values(program: ir.Program) -> set[str]:
    found: set[str] = set()
    for op in program.ops:
        received = isinstance(op, ir.Receive) and op.asked
        if received or isinstance(op, ir.TakeRows) or any(name in found for name in op.reads()):
            found.update(op.writes())
    return found


def _routes(program: ir.Program) -> dict[str, ir.MoeRoute]:
    """The choice of experts that each routed value's rows were dealt out by."""
    choices = {op.out: op for op in program.ops if isinstance(op, ir.MoeRoute)}
    found: dict[str, ir.MoeRoute] = {}
    for op in program.ops:
        if isinstance(op, ir.Dispatch):
            found[op.out] = choices[op.route]
        elif not isinstance(op, ir.Combine):
            for name in op.reads():
                if name in found:
                    found.update(dict.fromkeys(op.writes(), found[name]))
    return found
