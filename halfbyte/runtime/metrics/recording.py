"""`Recording`: when each phase of the engine and each op of the model ran, for as long as somebody wants to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...model.backend import Executable, Span
from ..step import StepPlan

MOST_SPANS = 1_000_000
"""Ops; a file of them has some 100 MB."""
MOST_STEPS = 1000
"""Steps whose ops an executable keeps."""


class Phase(NamedTuple):
    """A part of a step of the engine. Seconds are those of `time.perf_counter`."""

    name: str
    step: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class StepCounts:
    """What a step had to compute."""

    tokens: int
    sequences: int
    logit_rows: int
    put_back: int


@dataclass
class Recording:
    """Written by the engine's thread alone. When it is full it stops, and `full` says so.

    Ops are taken from the executable at the end, since that takes as long as a step of a small model; but those of the
    first step at once, to know how many steps there is room for.
    """

    executable: Executable
    most: int = MOST_SPANS
    most_steps: int = MOST_STEPS
    steps: int = 0
    phases: list[Phase] = field(default_factory=list)
    ops: list[Span] = field(default_factory=list)
    counts: dict[int, StepCounts] = field(default_factory=dict)
    full: bool = False
    current: int = 0

    def start(self) -> None:
        """Record the ops of the steps to come."""
        self.executable.trace(True)

    def begin(self, number: int) -> None:
        """A step begins."""
        if self.full:
            return
        if self.steps == 1:
            self.ops += self.executable.spans()
            self.most_steps = min(self.most_steps, self.most // max(len(self.ops), 1))
        if self.steps and self.steps >= self.most_steps:
            self.full = True
            self.executable.trace(False)
            return
        self.steps += 1
        self.current = number

    def planned(self, plan: StepPlan) -> None:
        """The step is about to be computed."""
        if not self.full:
            rows = sum(share.num_rows for share in plan.shares)
            self.counts[self.current] = StepCounts(plan.num_tokens, len(plan.shares), rows, len(plan.put_back))

    def phase(self, name: str, start: float, end: float) -> None:
        """A phase of the step has ended."""
        if not self.full:
            self.phases.append(Phase(name, self.current, start, end))

    def stop(self) -> None:
        """The end."""
        self.executable.trace(False)
        self.ops += self.executable.spans()
