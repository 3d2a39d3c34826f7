"""`adapt`: a model that can add adapters to its matrices, for each sequence those it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from .adapter import Adapter
from .backend import Weight
from .bind import BoundModel
from .check import check
from .program import AddScaled, Linear, Op, Program, TakeRows
from .row_range import RowRange, row_range


def adapt(bound: BoundModel, adapters: Sequence[Adapter]) -> BoundModel:
    """The same model with adapter i behind every `AddScaled` that has its number.

    Matrices side by side that multiply the same value stay together, then come their adapters' first halves, then the
    second ones, then the sums: a backend has to wait between these and nowhere else.
    """
    if not adapters:
        return bound
    work = _Adapting(bound.program, adapters)
    for is_product, ops in groupby(bound.program.ops, lambda op: (isinstance(op, Linear), op.reads()[:1])):
        if is_product[0]:
            work.products([op for op in ops if isinstance(op, Linear)])
        else:
            work.others(ops)
    program = replace(bound.program, ops=tuple(work.ops), widths=work.widths)
    check(program)
    return replace(bound, program=program, weights=bound.weights | work.weights)


@dataclass
class _Adapting:
    """A program in the making."""

    program: Program
    adapters: Sequence[Adapter]
    ops: list[Op] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.widths = dict(self.program.widths)
        self._asked: set[str] = set()

    def others(self, ops: Iterable[Op]) -> None:
        """As they are."""
        for op in ops:
            self.ops.append(op)
            self._note_rows(op)

    def products(self, ops: list[Linear]) -> None:
        """Products of one value."""
        firsts: dict[str, Op] = {}
        seconds: list[Op] = []
        sums: list[Op] = []
        for op in ops:
            self._note_rows(op)
            found = [(i, adapter) for i, adapter in enumerate(self.adapters) if _tensor(op) in adapter.pairs]
            so_far = op.out
            if found:
                so_far = self._value(f"{op.out}.plain", self.widths[op.out])
            self.ops.append(replace(op, out=so_far))
            for i, adapter in found:
                low = self._first(op, i, adapter, firsts)
                part = self._value(f"{op.out}.adapter{i}", self.widths[op.out])
                seconds.append(Linear(low, self._rows(op, i, adapter), part))
                after = op.out if i == found[-1][0] else self._value(f"{op.out}.with{i}", self.widths[op.out])
                factor = adapter.pairs[_tensor(op)].factor
                sums.append(AddScaled(so_far, part, after, i, factor, op.out in self._asked))
                so_far = after
        self.ops += [*firsts.values(), *seconds, *sums]

    def _first(self, op: Linear, i: int, adapter: Adapter, firsts: dict[str, Op]) -> str:
        """The product with A: one for all rows of a tensor that holds several matrices."""
        pair, low = adapter.pairs[_tensor(op)], f"{_tensor(op)}.adapter{i}"
        if low not in firsts:
            name = f"adapter{i} {pair.a.name}"
            self.weights[name] = replace(pair.a, name=name)
            firsts[low] = Linear(op.x, name, self._value(low, pair.a.shape[0]))
        return low

    def _rows(self, op: Linear, i: int, adapter: Adapter) -> str:
        """B, or as many rows of it as `op` has of its tensor."""
        b, part = adapter.pairs[_tensor(op)].b, row_range(op.weight)
        name = RowRange(f"adapter{i} {b.name}", part.start, part.stop).name
        data = b.data if part.stop is None else b.data[part.start : part.stop]
        self.weights[name] = replace(b, name=name, shape=(len(data), b.shape[1]), data=data)
        return name

    def _value(self, name: str, width: int) -> str:
        assert name not in self.widths, f"{name} is made twice"
        self.widths[name] = width
        return name

    def _note_rows(self, op: Op) -> None:
        if isinstance(op, TakeRows) or any(name in self._asked for name in op.reads()):
            self._asked.update(op.writes())


def _tensor(op: Linear) -> str:
    return row_range(op.weight).tensor
