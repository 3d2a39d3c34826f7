"""`ReferenceExecutable`: a program interpreted op by op in NumPy float32, the oracle of every backend."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .backend import Span, Stage, Weight
from .kv_types import KvTypes
from .program import Op, Program, Receive, StepBatch
from .reference_kv import PagedKv
from .reference_ops import OPS
from .reference_state import State


class ReferenceExecutable:
    """Slow and obvious; implements `Executable`, and of a share `StagedExecutable`, whose `stages` are those of a cut.

    Keys and values are rounded to the types `kv`, nothing else is.

    `lean` keeps no decoded matrix and no value longer than a later op reads it: any model runs in little memory, and
    each step decodes all of it again.
    """

    def __init__(
        self,
        program: Program,
        weights: Mapping[str, Weight],
        *,
        n_pages: int,
        page_len: int = 16,
        max_tokens: int = 512,
        kv: KvTypes | None = None,
        lean: bool = False,
        stages: Sequence[Stage] = (),
    ) -> None:
        self.program = program
        self.stages = stages or (Stage(0, len(program.ops)),)
        self.n_pages = n_pages
        self.page_len = page_len
        self.max_tokens = max_tokens
        self._lean = lean
        self._unread = _last_readers(program) if lean else [[] for _ in program.ops]
        self.kv = PagedKv(program.kv_layers, n_pages, page_len, kv or KvTypes())
        self.page_bytes = self.kv.page_bytes
        self._weights = weights
        self._decoded: dict[str, NDArray[np.float32]] = {}
        self._tapped: dict[str, NDArray[np.float32]] = {}
        self._spans: deque[Span] = deque(maxlen=1000 * len(program.ops))
        self._steps, self._tracing = 0, False
        self._state: State | None = None
        self._logits: NDArray[np.float32] | None = None

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step; writes `logits` f32[R, V], row r for token `batch.logit_rows[r]`."""
        self.begin(batch, logits)
        for number in range(len(self.stages)):
            self.run_stage(number)
        self.finish()

    def begin(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Start a step."""
        assert len(batch.ids) <= self.max_tokens, "the step has more tokens than were agreed on"
        assert (logits is None) == (not self.program.logits), "logits are for the one who makes them"
        self._state = State(batch, self.kv, self._weights, self._decoded, lean=self._lean)
        self._logits = logits

    def receive(self, name: str) -> NDArray[np.float32]:
        """Where the caller writes a value: f32[rows, width]."""
        batch = self._values().batch
        op = next(op for op in self.program.ops if isinstance(op, Receive) and op.out == name)
        shape = len(batch.logit_rows if op.asked else batch.ids), self.program.widths[name]
        return self._values().values.setdefault(name, np.full(shape, np.nan, np.float32))

    def run_stage(self, number: int) -> None:
        """Run the ops of a stage."""
        state, stage = self._values(), self.stages[number]
        for op, unread in zip(self.program.ops[stage.start : stage.stop], self._unread[stage.start :], strict=False):
            start = time.perf_counter()
            OPS[type(op)](op, state)
            for name in unread:
                del state.values[name]
            if self._tracing:
                self._spans.append(Span(_label(op), self._steps, 0, start, time.perf_counter()))

    def sent(self, name: str) -> NDArray[np.float32]:
        """A value of a stage that has run."""
        return self._values().values[name]

    def finish(self) -> None:
        """Write the logits and keep what is tapped."""
        values = self._values().values
        self._state = None
        self._steps += 1
        if self._logits is not None:
            self._logits[:] = values[self.program.logits]
        self._tapped = {name: values[name] for name in self.program.taps()}

    def _values(self) -> State:
        assert self._state is not None, "no step has begun"
        return self._state

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a tapped value was in the last step, f32[T, width] or f32[R, width]."""
        return self._tapped[name]

    def top_k(self, logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best of f32[V], fewer where fewer are numbers."""
        numbers = np.flatnonzero(~np.isnan(logits))
        best = numbers[np.argsort(-logits[numbers], kind="stable")[:k]].astype(np.int32)
        return best, logits[best]

    def expect(self, ks: Sequence[int]) -> None:
        """Nothing is gained by it here."""

    def top_k_rows(
        self, logits: NDArray[np.float32], ks: Sequence[int]
    ) -> list[tuple[NDArray[np.int32], NDArray[np.float32]] | None]:
        """`top_k` of each row; None for a k of 0."""
        return [self.top_k(row, k) if k else None for row, k in zip(logits, ks, strict=True)]

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""
        self.kv.copy_page(source, target)

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]."""
        self.kv.read_page(page, out)

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave."""
        self.kv.write_page(page, data)

    def trace(self, on: bool) -> None:
        """Record from the next op on when each one ran, or stop."""
        self._tracing = on

    def spans(self) -> list[Span]:
        """What was recorded since the last call, on one thread and without waits."""
        spans = list(self._spans)
        self._spans.clear()
        return spans

    def info(self) -> dict[str, str | int]:
        """Facts for people."""
        return {
            "isa": "numpy",
            "kernels": "reference",
            "threads": 1,
            "packed_bytes": sum(weight.data.nbytes for weight in self._weights.values()),
            "kv_bytes": self.kv.n_bytes,
        }

    def close(self) -> None:
        """Let go of the decoded weights and the tapped values."""
        self._decoded.clear()
        self._tapped.clear()


def _last_readers(program: Program) -> list[list[str]]:
    """For each op the values that nobody reads after it."""
    wanted = {program.logits, *program.taps()}
    unread = []
    for op in reversed(program.ops):
        last = {*op.reads(), *op.writes()} - wanted
        wanted |= last
        unread.append(sorted(last))
    return unread[::-1]


def _label(op: Op) -> str:
    subject = [*op.weights(), *op.writes(), *op.reads()][0]
    return f"{type(op).__name__} {subject.removesuffix('.weight')}"
