"""`check`: prove a program once, so that backends may trust it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from .op_rules import RULES, Shape, shapes_of
from .program import (
    AddScaled,
    Attention,
    Combine,
    Dispatch,
    ExpertLinear,
    KvWrite,
    Op,
    Program,
    Receive,
    ShortConv,
    TakeRows,
)

RowsOf = Literal["tokens", "asked"]
ROUTED = (Dispatch, ExpertLinear, Combine)


class Rows(NamedTuple):
    """What rows stand for: tokens or asked-for ones, or behind `Dispatch` the experts that `route` gives them."""

    of: RowsOf
    route: str | None = None


TOKENS, ASKED = Rows("tokens"), Rows("asked")


def check(program: Program) -> None:
    """Raise `AssertionError` with everything that is wrong: a broken program is a builder's bug, never a file's."""
    problems = list(_flow_problems(program))
    for index, op in enumerate(program.ops):
        rule = RULES.get(type(op))
        found = ["is of an unknown kind"] if rule is None else _complaints(rule, op, program)
        problems += [f"op {index} ({type(op).__name__}): {text}" for text in found]
    problems += _weight_problems(program)
    if problems:
        raise AssertionError("broken program: " + "; ".join(problems))


def weight_shapes(program: Program) -> dict[str, Shape]:
    """(N, M) that each weight of a sound program must have."""
    return {name: shape for op in program.ops for name, shape in shapes_of(op, program)}


def _complaints(rule: Callable[[Any, Program], Iterator[str]], op: Op, program: Program) -> list[str]:
    unknown = [name for name in op.reads() + op.writes() if name not in program.widths]
    return [f"{name!r} has no width" for name in unknown] or list(rule(op, program))


def _flow_problems(program: Program) -> Iterator[str]:
    """Order of writes and reads, of values and of KV layers, and what the rows of values stand for."""
    rows: dict[str, Rows] = {}
    read: set[str] = {program.logits}
    stored: set[int] = set()
    for index, op in enumerate(program.ops):
        where = f"op {index} ({type(op).__name__})"
        for name in op.reads():
            if name not in rows:
                yield f"{where}: reads {name!r} before it is written"
        read.update(op.reads())
        yield from (f"{where}: {text}" for text in _rows_problems(op, rows))
        yield from (f"{where}: {text}" for text in _kv_problems(op, stored))
        for name in op.writes():
            if name in rows:
                yield f"{where}: writes {name!r} a second time"
            rows[name] = _rows_of(op, rows)
    yield from _end_problems(program, rows, read, stored)


def _rows_problems(op: Op, rows: dict[str, Rows]) -> Iterator[str]:
    """Whether an op gets rows of the kinds that it can work on."""
    kinds = {name: rows[name] for name in op.reads() if name in rows}
    if len({kind.of for kind in kinds.values()}) > 1:
        yield "mixes rows of all tokens with rows of asked-for tokens"
    if isinstance(op, (KvWrite, Attention, TakeRows)) and any(kind != TOKENS for kind in kinds.values()):
        yield "wants rows of all tokens"
    if isinstance(op, AddScaled) and any(kind != Rows("asked" if op.asked else "tokens") for kind in kinds.values()):
        yield "adds to other rows than it says"
    if isinstance(op, ROUTED):
        route, x = kinds.get(op.route, TOKENS), kinds.get(op.x, TOKENS)
        if route.route is not None or x.route != (None if isinstance(op, Dispatch) else op.route):
            yield f"wants rows that {op.route!r} dealt out" if x.route is None else "wants a row a token"
    elif len({kind.route for kind in kinds.values()}) > 1:
        yield "mixes rows of tokens with rows of their experts"


def _rows_of(op: Op, rows: dict[str, Rows]) -> Rows:
    """What the rows stand for that an op writes."""
    kinds = [rows[name] for name in op.reads() if name in rows]
    if isinstance(op, Receive):
        return ASKED if op.asked else TOKENS
    of: RowsOf = "asked" if isinstance(op, TakeRows) or any(kind.of == "asked" for kind in kinds) else "tokens"
    if isinstance(op, ROUTED):
        return Rows(of, None if isinstance(op, Combine) else op.route)
    return Rows(of, kinds[0].route if kinds else None)


def _kv_problems(op: Op, stored: set[int]) -> Iterator[str]:
    """KV layers are written once, and before anyone looks."""
    if isinstance(op, KvWrite):
        if op.layer in stored:
            yield f"KV layer {op.layer} is written twice"
        stored.add(op.layer)
    if isinstance(op, (Attention, ShortConv)) and op.layer not in stored:
        yield f"KV layer {op.layer} is attended to before it is written"


def _end_problems(program: Program, rows: dict[str, Rows], read: set[str], stored: set[int]) -> Iterator[str]:
    if program.logits:
        yield from _logits_problems(program, rows)
    for name in rows.keys() - read:
        yield f"{name!r} is never read"
    for name in program.widths.keys() - rows.keys():
        yield f"{name!r} has a width but is never written"
    for layer in set(range(len(program.kv_layers))) - stored:
        yield f"KV layer {layer} is never written"


def _logits_problems(program: Program, rows: dict[str, Rows]) -> Iterator[str]:
    if rows.get(program.logits) != ASKED:
        yield f"the logits {program.logits!r} are not made for the asked-for rows"
    if program.widths.get(program.logits) != program.vocab_size and not program.encoder:
        yield f"the logits are {program.widths.get(program.logits)} wide for a vocabulary of {program.vocab_size}"


def _weight_problems(program: Program) -> Iterator[str]:
    seen: dict[str, Shape] = {}
    for op in program.ops:
        for name, shape in shapes_of(op, program):
            if seen.setdefault(name, shape) != shape:
                yield f"weight {name!r} is used as {seen[name]} and as {shape}"
