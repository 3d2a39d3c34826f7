"""What lowered programs touch, read off the addresses in instructions instead of the names they were planned by."""

from __future__ import annotations

from typing import NamedTuple

from halfbyte.cpu_kernels.calls import ORDER, QUANTIZED, Count, Ref, Stride, value_of
from halfbyte.cpu_kernels.instruction import LAYOUTS

READS = {
    "embed": (),
    "linear": ("x", "sums", "residual"),
    "experts": ("x", "sums", "order"),
    "route": ("x",),
    "dispatch": ("x", "x_quantized", "x_sums", "sources"),
    "combine": ("x", "route", "places"),
    "norm": ("x", "residual"),
    "quantize": ("x",),
    "gated": ("gate", "up"),
    "angles": (),
    "rope": ("x", "angles"),
    "kv_write": ("k", "v"),
    "conv": ("values",),
    "attention": ("q", "keys", "values"),
    "elementwise": ("a", "b"),
    "add_scaled": ("b", "out"),
    "take_rows": ("x",),
}
WRITES = {
    "embed": ("out",),
    "linear": ("out",),
    "experts": ("out",),
    "route": ("out", "order", "counters", "sources", "places"),
    "dispatch": ("out", "quantized", "sums"),
    "combine": ("out",),
    "norm": ("out", "quantized", "sums", "add_out"),
    "quantize": ("quantized", "sums"),
    "gated": ("out", "quantized", "sums"),
    "angles": ("out",),
    "rope": ("out",),
    "kv_write": ("keys", "values"),
    "conv": ("out",),
    "attention": ("out",),
    "elementwise": ("out",),
    "add_scaled": ("out",),
    "take_rows": ("out",),
}


class Touch(NamedTuple):
    call: int
    name: str
    """The value's, where it is one."""
    begin: int
    end: int
    writes: bool


def touches(runner):
    """Every stretch of memory that every call reads or writes; the logits are at 0."""
    placed = runner._placed
    result = []
    for index, (call, words) in enumerate(zip(placed.calls, placed.words[: placed.length], strict=True)):
        operands = dict(zip(LAYOUTS[call.layout].names, words[3:].tolist(), strict=False))
        counted = call.operands.get("count")
        if isinstance(counted, Count) and (route := placed.plan.lowering.route_of(counted.value)):
            begin, size = operands["count"], placed.plan.bytes_of(route.out + ORDER)
            result.append(Touch(index, route.out + ORDER, begin, begin + size, False))
        for names, writes in ((READS, False), (WRITES, True)):
            for operand in names[call.layout]:
                meant = call.operands[operand]
                if meant == 0:  # an operand that this call does without
                    continue
                begin = operands[operand]
                name = placed.plan.root(meant.value) if isinstance(meant, Ref) else f"at {begin}"
                result.append(Touch(index, name, begin, begin + size_of(placed, call, operand), writes))
    return result


def size_of(placed, call, operand):
    """Bytes of what an operand points at. Of a value all rows count, whatever a kernel does with them."""
    meant = call.operands[operand]
    if not isinstance(meant, Ref):
        return 1  # pages and angles are told apart by where they start
    if placed.plan.root(meant.value) == placed.plan.logits:
        return 1
    if meant.value.endswith(ORDER):
        at = placed.resolve(meant) - placed.resolve(Ref(meant.value))
        return placed.plan.bytes_of(meant.value) - at
    width = placed.plan.lowering.program.widths[value_of(meant.value)]
    groups = -(-width // 32)
    per_row = {"rows": groups * (64 if meant.value.endswith(QUANTIZED) else 128), "sums": groups * 16}[meant.part]
    stride = placed.resolve(Stride(meant.value))
    return (placed.plan.lowering.most_rows(meant.value) - 1) * (
        stride if meant.part == "rows" else stride // 4
    ) + per_row


def barriers(runner):
    return runner._placed.barriers


def overlap(a, b):
    return a.begin < b.end and b.begin < a.end


def races(runner):
    """Pairs of touches that no barrier keeps apart and whose order matters."""
    groups, group = [], 0
    for barrier in barriers(runner):
        groups.append(group)
        group += barrier
    all_touches = touches(runner)
    return [
        (a, b)
        for a in all_touches
        for b in all_touches
        if a.call < b.call and groups[a.call] == groups[b.call] and (a.writes or b.writes) and overlap(a, b)
    ]


def lives(runner):
    """For each value: its stretches of memory, and the calls of its first and its last touch."""
    found = {}
    for touch in touches(runner):
        stretches, calls = found.setdefault(touch.name, (set(), []))
        stretches.add((touch.begin, touch.end))
        calls.append(touch.call)
    return {name: (sorted(stretches), min(calls), max(calls)) for name, (stretches, calls) in found.items()}


def overlapping_lives(runner):
    """Pairs of values that share a byte while both are alive, a value being alive from its first touch to its last.

    What no call writes comes from outside and is alive from the start.
    """
    written = {touch.name for touch in touches(runner) if touch.writes}
    known = [(name, at, first if name in written else -1, last) for name, (at, first, last) in lives(runner).items()]
    return [
        (a[0], b[0])
        for i, a in enumerate(known)
        for b in known[:i]
        if a[2] <= b[3] and b[2] <= a[3] and any(x[0] < y[1] and y[0] < x[1] for x in a[1] for y in b[1])
    ]
