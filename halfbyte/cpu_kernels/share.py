"""`CpuShare`: a share of a program on this machine, whose other share somebody else computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Progress, Stage, Weight
from ..model.kv_types import KvTypes
from ..model.program import Program, Receive, StepBatch
from . import isa as isas
from . import threads as teams
from .executable import CpuExecutable


def build_share(
    program: Program,
    stages: Sequence[Stage],
    weights: Mapping[str, Weight],
    *,
    n_pages: int,
    max_tokens: int,
    threads: int | None = None,
    isa: str | None = None,
    kv: KvTypes | None = None,
    progress: Progress | None = None,
) -> CpuShare:
    """Like `executable.build`, for a program that stops behind each of its `stages`."""
    chosen = isas.detect() if isa is None else isas.named(isa)
    own = {name: weights[name] for name in program.weight_names()}
    count = teams.count(threads)
    return CpuShare(program, own, n_pages, max_tokens, count, chosen, kv or KvTypes(), progress, stages)


class CpuShare(CpuExecutable):
    """See `model.backend.StagedExecutable`."""

    def __init__(
        self,
        program: Program,
        weights: Mapping[str, Weight],
        n_pages: int,
        max_tokens: int,
        threads: int,
        isa: isas.Isa,
        kv: KvTypes,
        progress: Progress | None,
        stages: Sequence[Stage],
    ) -> None:
        self._ends = tuple(stage.stop for stage in stages[:-1])
        super().__init__(program, weights, n_pages, max_tokens, threads, isa, kv, progress)
        self._received = {
            op.out: (self._placed.view(op.out)[:, : program.widths[op.out]], op.asked)
            for op in program.ops
            if isinstance(op, Receive)
        }

    def begin(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Start a step."""
        with self._lock:
            self._begin(batch, logits)

    def receive(self, name: str) -> NDArray[np.float32]:
        """Where the caller writes a value: f32[rows, width]."""
        self._check_open()
        assert self._batch is not None, "no step has begun"
        rows, asked = self._received[name]
        return rows[: len(self._batch.logit_rows if asked else self._batch.ids)]

    def run_stage(self, number: int) -> None:
        """Run a stage; along with the last one the best logits are chosen, where these are made here."""
        with self._lock:
            self._check_open()
            last = number == len(self._ends)
            self._run_part(
                self._version.parts[number], 0 if self._logits is None or not last else self._along(self._logits)
            )

    def sent(self, name: str) -> NDArray[np.float32]:
        """A value of a stage that has run: f32[rows, width]."""
        return self.tapped(name)

    def finish(self) -> None:
        """All is done already."""
        with self._lock:
            self._steps += 1

    def close(self) -> None:
        """Stop the threads and let go of the memory; may be called twice."""
        super().close()
        self._received = {}
