"""`Mode`: a share lowered and placed for steps of one kind, ready to be enqueued stage by stage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..model.backend import Stage
from ..model.program import Program, Receive
from .bucket import STEPS
from .calls import Call, Multiply, Sizes
from .device import Device, Launch, Product
from .emit import EMIT
from .lower import Lowering
from .peaks import note_peaks
from .place import Addresses, Layout, lay_out, operands_of

Around = Callable[["Prepared", Callable[[], None]], None]


@dataclass(frozen=True)
class Lowered:
    """Calls of each stage, and where their values shall lie."""

    low: Lowering
    stages: tuple[tuple[Call | Multiply, ...], ...]
    layout: Layout
    most: Sizes

    def calls(self) -> Iterator[Call | Multiply]:
        """All of all stages."""
        return (call for stage in self.stages for call in stage)

    def kernels(self) -> set[str]:
        """Every kernel that steps of whatever size may need."""
        sizes = [Sizes(n, n, min(n, self.most.sequences)) for n in (*STEPS, self.most.tokens) if n <= self.most.tokens]
        return {
            name
            for call in self.calls()
            if isinstance(call, Call)
            for name in ([call.kernel] if isinstance(call.kernel, str) else map(call.kernel, sizes))
        }


def lower(low: Lowering, stages: Sequence[Stage], most: Sizes) -> Lowered:
    """Lower every stage of a share, for steps of up to `most`."""
    program, lowered, stays, first = low.program, [], dict[str, int](), 0
    wanted = {*program.taps(), program.logits, *(name for stage in stages for name in stage.sends)}
    for stage in stages:
        ops = program.ops[stage.start : stage.stop]
        calls = low.walk(ops, EMIT)
        if any(program.logits in op.writes() for op in ops) and not program.encoder:
            calls.append(note_peaks(low))
        lowered.append(tuple(calls))
        last = first + len(lowered[-1]) - 1
        # What comes is copied in before a stage's first call, what the host wants is copied out behind its last.
        stays |= {op.out: first for op in ops if isinstance(op, Receive)}
        stays |= {name: last for op in ops if not isinstance(op, Receive) for name in op.writes() if name in wanted}
        first = last + 1
    layout = lay_out(low, [call for calls in lowered for call in calls], stays, most)
    return Lowered(low, tuple(lowered), layout, most)


class Prepared(NamedTuple):
    """A call with its arguments."""

    call: Call | Multiply
    arguments: tuple[int | float, ...]


class Mode:
    """Enqueues what was lowered."""

    def __init__(self, device: Device, lowered: Lowered, addresses: Addresses) -> None:
        self.lowered, self.addresses = lowered, addresses
        self._device = device
        self._stages = [
            [Prepared(call, tuple(map(addresses.of, operands_of(call)))) for call in stage] for stage in lowered.stages
        ]

    @property
    def recorded(self) -> bool:
        """Whether a graph can repeat steps of about one size: products of a library are chosen for each."""
        return self.lowered.low.products == "bytes"

    @property
    def program(self) -> Program:
        """The share's."""
        return self.lowered.low.program

    def enqueue(self, stage: int, sizes: Sizes, around: Around | None = None) -> None:
        """Enqueue the calls of a stage; `around` gets each of them to run itself."""
        for prepared in self._stages[stage]:
            if around is None:
                self._run(prepared, sizes)
            else:
                around(prepared, functools.partial(self._run, prepared, sizes))

    def _run(self, prepared: Prepared, sizes: Sizes) -> None:
        call, arguments = prepared
        if isinstance(call, Multiply):
            x, weight, out = map(int, arguments)
            self._device.multiply(Product(x, weight, out, sizes.tokens, call.columns, call.rows))
            return
        grid = call.grid(sizes)
        if 0 in grid:
            return
        kernel = call.kernel if isinstance(call.kernel, str) else call.kernel(sizes)
        shared = call.shared if isinstance(call.shared, int) else call.shared(sizes)
        self._device.launch(Launch(kernel, grid, call.threads, arguments, shared))
