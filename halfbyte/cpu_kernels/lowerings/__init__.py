"""The few vector ops that differ by instruction set, one file each; `active` holds those being compiled for.

A lowering file offers `dot4` and `pause`, `from_half` and `to_half` where the CPU cannot convert halves, `field` and
`look_up` where it has instructions for these, and `begin_dots`, `end_dots`, `sum_eight`, `read_eight`, `enter`, `leave`
where it has matrix registers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..isa import Isa
from ..vec import splat


class Active:
    """The lowerings of one ISA. Kernels are compiled in a process that calls `use` first and once."""

    isa: Isa
    dot4: Callable[..., Any]
    pause: Callable[..., Any]
    from_half: Callable[..., Any]
    to_half: Callable[..., Any]
    field: Callable[..., Any]
    look_up: Callable[..., Any]
    begin_dots: Callable[..., None] | None
    end_dots: Callable[..., list[Any]] | None
    sum_eight: Callable[..., None] | None
    read_eight: Callable[..., list[Any]] | None
    enter: Callable[..., None] | None
    leave: Callable[..., None] | None

    def use(self, isa: Isa) -> None:
        """Compile for `isa` from now on."""
        module = importlib.import_module(f".{isa.lowering}", __name__)
        self.isa = isa
        self.dot4, self.pause = module.dot4, module.pause
        self.from_half = getattr(module, "from_half", _from_half)
        self.to_half = getattr(module, "to_half", _to_half)
        self.field = getattr(module, "field", _field)
        self.look_up = getattr(module, "look_up", _look_up)
        self.begin_dots, self.end_dots = getattr(module, "begin_dots", None), getattr(module, "end_dots", None)
        self.sum_eight, self.read_eight = getattr(module, "sum_eight", None), getattr(module, "read_eight", None)
        self.enter, self.leave = getattr(module, "enter", None), getattr(module, "leave", None)


def _same_shape(value: Any, kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind, value.type.count) if isinstance(value.type, ir.VectorType) else kind


def _from_half(builder: Any, value: Any) -> Any:
    return builder.fpext(value, _same_shape(value, ir.FloatType()))


def _to_half(builder: Any, value: Any) -> Any:
    return builder.fptrunc(value, _same_shape(value, ir.HalfType()))


def _bytes(value: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(8), 64), [value] * 64)


def _field(builder: Any, v: Any, shift: Any, bits: int, to: int) -> Any:
    """`bits` bits at `shift` of each of 64 bytes, moved to bit `to`.

    Bytes have no shift: move pairs, mask the neighbour's bits, which at the top are none.
    """
    pairs = ir.VectorType(ir.IntType(16), 32)
    moved = builder.lshr(builder.bitcast(v, pairs), splat(builder, builder.trunc(shift, pairs.element), 32))
    masked = builder.and_(builder.bitcast(moved, v.type), _bytes((1 << bits) - 1))
    if to == 0:
        return masked
    return builder.bitcast(builder.shl(builder.bitcast(masked, pairs), ir.Constant(pairs, [to] * 32)), v.type)


def _look_up(builder: Any, entries: list[int], codes: Any) -> Any:
    """Entry `code` of sixteen for each of 64 bytes, by comparing."""
    found = _bytes(entries[0])
    for code, entry in enumerate(entries[1:], 1):
        found = builder.select(builder.icmp_unsigned("==", codes, _bytes(code)), _bytes(entry), found)
    return found


active = Active()
