"""Programs that keep values until the end of a step, for whoever wants to know what matrices multiply."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .check import check
from .program import ExpertLinear, Linear, Op, Program, TakeRows, Tap
from .row_range import row_range


def with_taps(program: Program, values: Collection[str]) -> Program:
    """The same program with `values` kept for `Executable.tapped`; the logits, which `run` gives, are none of them."""
    assert program.logits not in values, "the logits need no tap"
    tapped = set(program.taps())
    taps = tuple(Tap(value) for value in dict.fromkeys(values) if value not in tapped)
    return _checked(replace(program, ops=program.ops + taps))


def linear_inputs(program: Program) -> dict[str, str]:
    """Which value each matrix multiplies, by the name of its tensor; no program uses a matrix twice.

    Where rows are taken of a value only to be multiplied, it is the value that they are taken of. Matrices that share
    a tensor multiply the same.
    """
    whole = {op.out: op.x for op in program.ops if isinstance(op, TakeRows)}
    linears = [op for op in program.ops if isinstance(op, Linear | ExpertLinear)]
    return {row_range(op.weight).tensor: whole.get(op.x, op.x) for op in linears}


def routes_of(program: Program) -> dict[str, tuple[str, int]]:
    """Of each value that matrices of experts multiply, the value that says whose its rows are, and how many experts."""
    return {op.x: (op.route, op.experts) for op in program.ops if isinstance(op, ExpertLinear)}


def head_of(program: Program) -> str:
    """Name of the matrix that the logits come from; with tied weights it is the embedding table."""
    return program.ops[_head_index(program)].weights()[0]


def all_rows(program: Program) -> Program:
    """The same program with every value of all tokens; only the head is left to the asked-for ones.

    Architectures drop the rows that nobody asked for in the last layer already, so its matrices see a part of a text.
    """
    renamed = {op.out: op.x for op in program.ops if isinstance(op, TakeRows)}
    head = _head_index(program)
    ops: list[Op] = []
    for index, op in enumerate(program.ops):
        if isinstance(op, TakeRows):
            continue
        changes = {name: renamed.get(getattr(op, name), getattr(op, name)) for name in op.READS}
        if index == head:
            ops.append(TakeRows(changes["x"], ASKED))
            changes["x"] = ASKED
        ops.append(replace(op, **changes))
    widths = {name: width for name, width in program.widths.items() if name not in renamed}
    widths[ASKED] = program.widths[program.ops[head].reads()[0]]
    return _checked(replace(program, ops=tuple(ops), widths=widths))


ASKED = "asked_rows"
"""Name of the value that `all_rows` hands to the head."""


def _head_index(program: Program) -> int:
    """The last matrix on the way to the logits."""
    writer = {name: index for index, op in enumerate(program.ops) for name in op.writes()}
    value = program.logits
    while not isinstance(program.ops[writer[value]], Linear):
        value = program.ops[writer[value]].reads()[0]
    return writer[value]


def _checked(program: Program) -> Program:
    check(program)
    return program
