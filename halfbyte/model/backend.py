"""What every backend offers: the only face that `runtime/` sees of compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..quant.block import BlockFormat
from .program import StepBatch

Progress = Callable[[str, int, int], None]
"""`progress(what, done, total)`, called from the loading thread; `what` is "compile" or "pack"."""


@dataclass(frozen=True)
class Weight:
    """One weight as it lies in the file: `data` u8[N, row_bytes] (a read-only view of the mapped file), shape (N, M).

    A vector (norm weight, bias) has shape (1, M).
    """

    name: str
    format: BlockFormat
    shape: tuple[int, int]
    data: NDArray[np.uint8]

    def decode(self) -> NDArray[np.float32]:
        """f32[N, M]."""
        return self.format.decode(self.data).reshape(self.shape)


class Span(NamedTuple):
    """One piece of a step on one thread: an op with the weight it reads, or `WAIT`.

    Seconds are those of `time.perf_counter`.
    """

    name: str
    step: int
    thread: int
    start_s: float
    end_s: float


WAIT = "wait"
"""Name of the time a thread waits for the others, which shows how evenly they share the work."""


class Executable(Protocol):
    """A program made ready to run on one machine, with its KV pages. One thread at a time may use it."""

    page_len: int
    n_pages: int
    page_bytes: int

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step; writes `logits` f32[R, V], row r for token `batch.logit_rows[r]`."""

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a value that the program taps was in the last step, until the next one: f32[T, width].

        Behind `TakeRows` f32[R, width]. It may be a view of memory that the next step writes to.
        """

    def top_k(self, logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best of f32[V], best first; among equals the lower id first. NaN is never chosen."""

    def expect(self, ks: Sequence[int]) -> None:
        """Say what `top_k_rows` will ask for after the next step; a backend that can finds it along."""

    def top_k_rows(
        self, logits: NDArray[np.float32], ks: Sequence[int]
    ) -> list[tuple[NDArray[np.int32], NDArray[np.float32]] | None]:
        """`top_k` of each row of f32[R, V] with its own k; None for a k of 0.

        In the array that `run` wrote to, rows must be as it left them.
        """

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]; not to be called during `run`."""

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave: of this executable, or of another made alike for the same program."""

    def trace(self, on: bool) -> None:
        """Record from the next step on when each op ran, or stop. A step of a small model takes 5 % longer."""

    def spans(self) -> list[Span]:
        """What was recorded and not asked for yet, of the last thousand steps at most. Steps count from the load."""

    def info(self) -> dict[str, str | int]:
        """Facts for people: isa, kernels, threads, packed_bytes, kv_bytes."""

    def close(self) -> None:
        """Free memory and threads; may be called twice."""


@runtime_checkable
class OwnsLogits(Protocol):
    """An executable that brings logits to memory of its own, from where they must be copied to any other."""

    def logits_memory(self, rows: int, vocab_size: int) -> NDArray[np.float32]:
        """That memory f32[rows, V], or any other where it is not as asked: for `run`, until `close`."""


Place = Literal["cpu", "gpu"]
Layers = int | Literal["auto", "all"]
"""How many layers somebody wants on a GPU; "auto" is as many as fit."""


class Stage(NamedTuple):
    """Ops `start` to `stop` - 1 of a share of a program: what runs before another share has its turn.

    `receives` are the values that others must have written by then, `sends` those that others will ask for.
    """

    start: int
    stop: int
    receives: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()


class StagedExecutable(Protocol):
    """A share of a program that takes turns with the other. One thread at a time may use it.

    A step is `begin`, then every stage in order, each once what it receives is written, then `finish`. A step that
    failed is left as it is; the next one begins anew. Methods of the same name are as in `Executable`.
    """

    page_len: int
    n_pages: int
    page_bytes: int

    def begin(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Start a step; whoever makes the `logits` f32[R, V] gets the array to write to, others None."""

    def receive(self, name: str) -> NDArray[np.float32]:
        """Where in the host's memory the caller writes a value before it is read: f32[rows, width].

        Rows need not lie side by side.
        """

    def run_stage(self, number: int) -> None:
        """Run a stage, or have it run while the caller goes on."""

    def sent(self, name: str) -> NDArray[np.float32]:
        """A value that the stage before made, f32[rows, width], once it is there: until the next stage runs."""

    def finish(self) -> None:
        """Return when the step is done and the logits are written."""

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a tapped value was in the last step."""

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]; not to be called during a step."""

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave."""

    def trace(self, on: bool) -> None:
        """Record from the next step on when each op ran, or stop."""

    def spans(self) -> list[Span]:
        """What was recorded and not asked for yet. Steps count from the load."""

    def info(self) -> dict[str, str | int]:
        """Facts for people: isa, kernels, packed_bytes, kv_bytes."""

    def close(self) -> None:
        """Free memory and threads; may be called twice."""
