"""Where the values of a lowered share lie on the device, and calls with addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..model.program import Program
from .calls import (
    Call,
    Count,
    Data,
    Form,
    Multiply,
    Operand,
    Packed,
    Pages,
    Ref,
    Scratch,
    Sizes,
    StepAt,
    Stride,
    Vector,
)  # fmt: skip
from .lower import Lowering
from .packing import PackedMatrix
from .step_image import ROWS_AT, TOKENS_AT

ALIGNED = 256
Key = tuple[str, Form]


def rounded(n_bytes: int) -> int:
    """Up to what everything on the device is aligned to."""
    return -(-n_bytes // ALIGNED) * ALIGNED


def stride_of(width: int) -> int:
    """Floats from one row to the next."""
    return -(-width // 64) * 64


def form_bytes(form: Form, rows: int, width: int) -> int:
    """Bytes of so many rows of a value; see `kernels/forms.cuh`."""
    quads, units = -(-rows // 4), -(-width // 256)
    return {
        "rows": 4 * rows * stride_of(width),
        "planes": quads * units * 2048,
        "records": quads * units * 512,
        "halves": 2 * rows * width,
        "half_scales": 4 * rows,
    }[form]


@dataclass(frozen=True)
class Layout:
    """Offsets of forms of values in one piece of memory, and of scratch by name in another, kept from step to step."""

    values: Mapping[Key, int]
    value_bytes: int
    scratch: Mapping[str, int]
    scratch_bytes: int


def lay_out(low: Lowering, calls: Sequence[Call | Multiply], stays: Mapping[str, int], sizes: Sizes) -> Layout:
    """Room for the largest steps. Values that the host brings or fetches are there at the calls of the numbers `stays`.

    What a stage made is read by later ones at most: all calls in a row are one life.
    """
    spans = _spans(calls, stays)
    taken: list[tuple[int, int, int]] = []  # (end of life, offset, end of room)
    offsets, size = {}, 0
    for key, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        value, form = key
        n_bytes = rounded(form_bytes(form, low.most_rows(value, sizes), low.program.widths[value]))
        taken = [room for room in taken if room[0] >= start]
        offset = _gap(taken, n_bytes)
        taken.append((end, offset, offset + n_bytes))
        offsets[key] = offset
        size = max(size, offset + n_bytes)
    scratch: dict[str, int] = {}
    for operand in _operands(calls):
        if isinstance(operand, Scratch):
            scratch[operand.name] = max(scratch.get(operand.name, 0), rounded(operand.n_bytes(sizes)))
    places, scratch_bytes = {}, 0
    for name, n_bytes in scratch.items():
        places[name] = scratch_bytes
        scratch_bytes += n_bytes
    return Layout(offsets, size, places, scratch_bytes)


def _gap(taken: list[tuple[int, int, int]], n_bytes: int) -> int:
    """The lowest offset with so much room."""
    offset = 0
    for _, start, end in sorted(taken, key=lambda room: room[1]):
        if start - offset >= n_bytes:
            break
        offset = max(offset, end)
    return offset


def _spans(calls: Sequence[Call | Multiply], stays: Mapping[str, int]) -> dict[Key, tuple[int, int]]:
    """First and last call that uses each form of a value."""
    spans: dict[Key, tuple[int, int]] = {}
    for index, call in enumerate(calls):
        for operand in operands_of(call):
            if isinstance(operand, Ref):
                key = operand.value, operand.form
                spans[key] = spans.get(key, (index, index))[0], index
    for key, (start, end) in spans.items():
        there = stays.get(key[0], start)
        spans[key] = min(start, there), max(end, there)
    return spans


def operands_of(call: Call | Multiply) -> Sequence[Operand]:
    """All operands of a call."""
    return call.operands if isinstance(call, Call) else (call.x, call.weight, call.out)


def _operands(calls: Sequence[Call | Multiply]) -> Iterator[Operand]:
    return (operand for call in calls for operand in operands_of(call))


@dataclass(frozen=True)
class Addresses:
    """Where everything is that operands name."""

    program: Program
    layout: Layout
    values: int
    scratch: int
    packed: Mapping[str, PackedMatrix]
    vectors: Mapping[str, int]
    constants: Mapping[bytes, int]
    pages: int
    step: int

    def of(self, operand: Operand) -> int | float:
        """The argument that an operand becomes."""
        match operand:
            case Ref(value, form):
                return self.values + self.layout.values[value, form]
            case Stride(value):
                return stride_of(self.program.widths[value])
            case Count(asked):
                return self.step + (ROWS_AT if asked else TOKENS_AT)
            case Packed(weight):
                return self.packed[weight].address
            case Vector(weight):
                return self.vectors[weight]
            case Data(content):
                return self.constants[content]
            case Pages():
                return self.pages
            case StepAt():
                return self.step
            case Scratch(_, name):
                return self.scratch + self.layout.scratch[name]
            case _:
                return operand
