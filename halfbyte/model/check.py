"""`check`: prove a program once, so that backends may trust it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

from .program import (
    Add,
    Attention,
    Embed,
    GatedAct,
    KvWrite,
    Linear,
    Op,
    Program,
    RmsNorm,
    Rope,
    Scale,
    Softcap,
    TakeRows,
    Tap,
)

Rows = Literal["tokens", "asked"]
Shape = tuple[int, int]


def check(program: Program) -> None:
    """Raise `AssertionError` with everything that is wrong: a broken program is a builder's bug, never a file's."""
    problems = list(_flow_problems(program))
    for index, op in enumerate(program.ops):
        rule = _RULES.get(type(op))
        found = ["is of an unknown kind"] if rule is None else _complaints(rule, op, program)
        problems += [f"op {index} ({type(op).__name__}): {text}" for text in found]
    problems += _weight_problems(program)
    if problems:
        raise AssertionError("broken program: " + "; ".join(problems))


def weight_shapes(program: Program) -> dict[str, Shape]:
    """(N, M) that each weight of a sound program must have."""
    return {name: shape for op in program.ops for name, shape in _shapes_of(op, program)}


def _complaints(rule: Callable[[Any, Program], Iterator[str]], op: Op, program: Program) -> list[str]:
    unknown = [name for name in op.reads() + op.writes() if name not in program.widths]
    return [f"{name!r} has no width" for name in unknown] or list(rule(op, program))


def _flow_problems(program: Program) -> Iterator[str]:
    """Order of writes and reads, of values and of KV layers, and whether rows are tokens or asked-for tokens."""
    rows: dict[str, Rows] = {}
    read: set[str] = {program.logits}
    stored: set[int] = set()
    for index, op in enumerate(program.ops):
        where = f"op {index} ({type(op).__name__})"
        for name in op.reads():
            if name not in rows:
                yield f"{where}: reads {name!r} before it is written"
        read.update(op.reads())
        kinds = {rows[name] for name in op.reads() if name in rows}
        if len(kinds) > 1:
            yield f"{where}: mixes rows of all tokens with rows of asked-for tokens"
        if isinstance(op, (KvWrite, Attention, TakeRows)) and kinds == {"asked"}:
            yield f"{where}: wants rows of all tokens"
        if isinstance(op, KvWrite):
            if op.layer in stored:
                yield f"{where}: KV layer {op.layer} is written twice"
            stored.add(op.layer)
        if isinstance(op, Attention) and op.layer not in stored:
            yield f"{where}: KV layer {op.layer} is attended to before it is written"
        kind: Rows = "asked" if isinstance(op, TakeRows) or kinds == {"asked"} else "tokens"
        for name in op.writes():
            if name in rows:
                yield f"{where}: writes {name!r} a second time"
            rows[name] = kind
    yield from _end_problems(program, rows, read, stored)


def _end_problems(program: Program, rows: dict[str, Rows], read: set[str], stored: set[int]) -> Iterator[str]:
    if rows.get(program.logits) != "asked":
        yield f"the logits {program.logits!r} are not made for the asked-for rows"
    if program.widths.get(program.logits) != program.vocab_size:
        yield f"the logits are {program.widths.get(program.logits)} wide for a vocabulary of {program.vocab_size}"
    for name in rows.keys() - read:
        yield f"{name!r} is never read"
    for name in program.widths.keys() - rows.keys():
        yield f"{name!r} has a width but is never written"
    for layer in set(range(len(program.kv_layers))) - stored:
        yield f"KV layer {layer} is never written"


def _weight_problems(program: Program) -> Iterator[str]:
    seen: dict[str, Shape] = {}
    for op in program.ops:
        for name, shape in _shapes_of(op, program):
            if seen.setdefault(name, shape) != shape:
                yield f"weight {name!r} is used as {seen[name]} and as {shape}"


def _shapes_of(op: Op, program: Program) -> Iterator[tuple[str, Shape]]:
    widths = program.widths
    if isinstance(op, Embed):
        yield op.table, (program.vocab_size, widths.get(op.out, 0))
    elif isinstance(op, RmsNorm):
        yield op.weight, (1, widths.get(op.x, 0) // max(1, op.groups))
    elif isinstance(op, Linear):
        yield op.weight, (widths.get(op.out, 0), widths.get(op.x, 0))
        if op.bias is not None:
            yield op.bias, (1, widths.get(op.out, 0))


def _same_width(op: Op, program: Program) -> Iterator[str]:
    found = {name: program.widths[name] for name in op.reads() + op.writes()}
    if len(set(found.values())) > 1:
        yield "widths differ: " + ", ".join(f"{name} {width}" for name, width in found.items())


def _free(op: Op, program: Program) -> Iterator[str]:
    """Any input and output width will do: the weight's shape follows from them."""
    yield from ()


def _check_norm(op: RmsNorm, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if op.groups < 1 or program.widths[op.x] % op.groups:
        yield f"{op.groups} groups do not divide {program.widths[op.x]}"
    if not 0 < op.eps < math.inf:
        yield f"eps is {op.eps}"


def _check_rope(op: Rope, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    width, turned = program.widths[op.x], 2 * len(op.table.inv_freq)
    if op.heads < 1 or width % op.heads:
        yield f"{op.heads} heads do not divide {width}"
    elif turned > width // op.heads:
        yield f"{turned} channels turn in heads of {width // op.heads}"
    if not all(map(math.isfinite, (*op.table.inv_freq, op.table.magnitude))):
        yield "the rope table holds values that are not finite"


def _check_kv_write(op: KvWrite, program: Program) -> Iterator[str]:
    if not 0 <= op.layer < len(program.kv_layers):
        yield f"there is no KV layer {op.layer}"
        return
    layer = program.kv_layers[op.layer]
    for name, size in ((op.k, layer.key_size), (op.v, layer.value_size)):
        if program.widths[name] != layer.kv_heads * size:
            yield f"{name!r} is {program.widths[name]} wide, KV layer {op.layer} holds {layer.kv_heads} heads of {size}"


def _check_attention(op: Attention, program: Program) -> Iterator[str]:
    if not 0 <= op.layer < len(program.kv_layers):
        yield f"there is no KV layer {op.layer}"
        return
    layer = program.kv_layers[op.layer]
    for name in ("kv_heads", "key_size", "value_size", "window"):
        if getattr(op, name) != getattr(layer, name):
            yield f"{name} is {getattr(op, name)}, of KV layer {op.layer} {getattr(layer, name)}"
    if op.kv_heads < 1 or op.heads % op.kv_heads:
        yield f"{op.kv_heads} KV heads do not divide {op.heads} heads"
    for value, size in ((op.q, op.key_size), (op.out, op.value_size)):
        if program.widths[value] != op.heads * size:
            yield f"{value!r} is {program.widths[value]} wide, not {op.heads} heads of {size}"
    if not math.isfinite(op.scale) or (op.window is not None and op.window < 1):
        yield f"scale is {op.scale}, window {op.window}"
    if op.softcap is not None and not 0 < op.softcap < math.inf:
        yield f"softcap is {op.softcap}"


def _check_softcap(op: Softcap, program: Program) -> Iterator[str]:
    yield from _same_width(op, program)
    if not 0 < op.cap < math.inf:
        yield f"cap is {op.cap}"


_RULES: dict[type[Op], Callable[[Any, Program], Iterator[str]]] = {
    Embed: _free,
    RmsNorm: _check_norm,
    Linear: _free,
    Rope: _check_rope,
    KvWrite: _check_kv_write,
    Attention: _check_attention,
    GatedAct: _same_width,
    Add: _same_width,
    TakeRows: _same_width,
    Scale: _same_width,
    Softcap: _check_softcap,
    Tap: _free,
}
