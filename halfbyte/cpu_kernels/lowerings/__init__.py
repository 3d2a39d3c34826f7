"""The few vector ops that differ by instruction set, one file each; `active` holds those being compiled for.

A lowering file offers `dot4` and `pause`, `from_half` and `to_half` where the CPU cannot convert halves,
and `begin_dots`, `end_dots`, `enter`,
`leave` where it has matrix registers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..isa import Isa


class Active:
    """The lowerings of one ISA. Kernels are compiled in a process that calls `use` first and once."""

    isa: Isa
    dot4: Callable[..., Any]
    pause: Callable[..., Any]
    from_half: Callable[..., Any]
    to_half: Callable[..., Any]
    begin_dots: Callable[..., None] | None
    end_dots: Callable[..., list[Any]] | None
    enter: Callable[..., Any] | None
    leave: Callable[..., Any] | None

    def use(self, isa: Isa) -> None:
        """Compile for `isa` from now on."""
        module = importlib.import_module(f".{isa.lowering}", __name__)
        self.isa = isa
        self.dot4, self.pause = module.dot4, module.pause
        self.from_half = getattr(module, "from_half", _from_half)
        self.to_half = getattr(module, "to_half", _to_half)
        self.begin_dots, self.end_dots = getattr(module, "begin_dots", None), getattr(module, "end_dots", None)
        self.enter, self.leave = getattr(module, "enter", None), getattr(module, "leave", None)


def _same_shape(value: Any, kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind, value.type.count) if isinstance(value.type, ir.VectorType) else kind


def _from_half(builder: Any, value: Any) -> Any:
    return builder.fpext(value, _same_shape(value, ir.FloatType()))


def _to_half(builder: Any, value: Any) -> Any:
    return builder.fptrunc(value, _same_shape(value, ir.HalfType()))


active = Active()
