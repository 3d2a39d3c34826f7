"""`GpuExecutable`: a share of a program on a GPU."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from ..model.backend import Progress, Span, Stage, Weight
from ..model.kv_types import KvTypes
from ..model.program import Program, Receive, StepBatch
from .assembly import Assembly
from .border import Border, Room, side_by_side
from .bucket import bucket
from .calls import Ref, Sizes
from .device import Device, Recording
from .groups import Group, groups_of
from .mode import Mode
from .peaks import PEAKS, peak_stride, peaks_scratch
from .spans import SpanLog

log = logging.getLogger("halfbyte.gpu_offload")


def build(
    program: Program,
    stages: Sequence[Stage],
    weights: Mapping[str, Weight],
    *,
    device: Device,
    n_pages: int,
    max_tokens: int,
    max_seqs: int,
    context: int,
    kv: KvTypes | None = None,
    progress: Progress | None = None,
) -> GpuExecutable:
    """Bring a share of a program to a device: `stages` are of its ops, `weights` all that they read.

    `n_pages` KV pages of 16 tokens, steps of up to `max_tokens` tokens of `max_seqs` sequences of up to `context`.
    Raises `ResourceError` where the device has too little memory, `UnsupportedError` for an op no kernel computes.
    """
    assembly = Assembly(
        program, tuple(stages), weights, device, n_pages, max_tokens, max_seqs, context, kv or KvTypes(), progress
    )
    return GpuExecutable(assembly)


class GpuExecutable:
    """See `model.backend.StagedExecutable`. One thread at a time may use it."""

    page_len = 16

    def __init__(self, assembly: Assembly) -> None:
        self.n_pages, self.page_bytes = assembly.n_pages, assembly.pages.page_bytes
        self._assembly, self._program = assembly, assembly.program
        self._device, self._stages = assembly.device, assembly.stages
        self._most = assembly.most
        self._borders = self._make_borders()
        self._recordings: dict[tuple[int, str, bool, Sizes], Recording] = {}
        self._groups: list[Group] = []
        self._logits: NDArray[np.float32] | None = None
        self._done: set[str] = set()
        self._queued = False
        self._spans = SpanLog(self._device)
        self._closed = False

    def _make_borders(self) -> dict[str, Border]:
        """Of all values that come and go.

        Those of each stage lie in the same room, as there may be some in every layer; what stays has one of its own.
        """
        low, program, most = self._assembly.decode.lowered.low, self._program, self._most

        def make(room: Room, offset: int, name: str) -> Border:
            if name == PEAKS:
                stride = peak_stride(program.vocab_size)
                return Border(room, offset, stride, most.rows, True, stride)
            rows = most.rows if low.asked(name) else low.most_rows(name, most)
            return Border(room, offset, program.widths[name], rows, low.asked(name))

        borders: dict[str, Border] = {}
        coming, going, staying = (Room(self._device) for _ in range(3))
        passing = {name for stage in self._stages for name in stage.sends if program.taps().count(name) == 1}
        for stage in self._stages:
            received = [op.out for op in program.ops[stage.start : stage.stop] if isinstance(op, Receive)]
            borders |= side_by_side(coming, received, make)
            borders |= side_by_side(going, [name for name in stage.sends if name in passing], make)
        kept = [name for name in dict.fromkeys(program.taps()) if name not in passing]
        kept += [program.logits] if program.logits else []
        kept += [PEAKS] if program.logits and not program.encoder else []
        return borders | side_by_side(staying, kept, make)

    # --- a step ---

    def begin(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Start a step; `logits` f32[R, V] where this share makes them."""
        self._check_open()
        self._check_fits(batch)
        self._groups = groups_of(batch, self._program.encoder)
        self._logits = logits
        self._done.clear()
        self._spans.begin()
        for group in self._groups:
            self._assembly.steps[group.kind].send(group.batch)

    def receive(self, name: str) -> NDArray[np.float32]:
        """Where the caller writes a value before the stage that reads it: f32[rows, width]."""
        self._wait_for_stages()
        border = self._borders[name]
        return border.whole[: self._count(border), : border.width]

    def _wait_for_stages(self) -> None:
        """Until then what came for the stage before may still be on its way."""
        if self._queued:
            self._device.synchronize()
            self._queued = False

    def run_stage(self, number: int) -> None:
        """Enqueue a stage, and the copies of what comes and goes."""
        self._queued = True
        for group in self._groups:
            for name in self._stages[number].receives:
                self._borders[name].gather(group)
            mode = self._assembly.mode(group)
            if mode.recorded and not self._spans.on:
                self._replay(number, group, mode)
            else:
                self._enqueue(number, group, mode, self._exact(group))

    def _exact(self, group: Group) -> Sizes:
        batch = group.batch
        return Sizes(len(batch.ids), len(batch.logit_rows), len(batch.seq_len))

    def _replay(self, number: int, group: Group, mode: Mode) -> None:
        """One graph for steps of about this size, recorded when it is first wanted."""
        exact = self._exact(group)
        sizes = bucket(exact.tokens, exact.rows, exact.sequences, mode.lowered.most)
        key = number, group.kind, group.tokens is None, sizes
        if key not in self._recordings:
            self._recordings[key] = self._device.record(lambda: self._enqueue(number, group, mode, sizes))
        self._recordings[key].replay()

    def _enqueue(self, number: int, group: Group, mode: Mode, sizes: Sizes) -> None:
        stage, device = self._stages[number], self._device
        for name in stage.receives:
            border = self._borders[name]
            rows = sizes.rows if border.asked else sizes.tokens
            device.copy_in(mode.addresses.of(Ref(name)), border.part(group)[:rows])  # type: ignore[arg-type]
        mode.enqueue(number, sizes, self._spans.around if self._spans.on else None)
        for name in self._leaving(number):
            border = self._borders[name]
            rows = sizes.rows if border.asked else mode.lowered.low.most_rows(name, sizes)
            at = peaks_scratch(self._program.vocab_size) if name == PEAKS else Ref(name)
            device.copy_out(border.part(group)[:rows], mode.addresses.of(at))  # type: ignore[arg-type]

    def _leaving(self, number: int) -> list[str]:
        """Values that a stage makes and the host wants."""
        return self._assembly.leaving[number]

    def sent(self, name: str) -> NDArray[np.float32]:
        """A value that a stage before made, f32[rows, width], once it is there."""
        border = self._borders[name]
        if name not in self._done:
            self._wait_for_stages()
            for group in self._groups:
                border.scatter(group)
            self._done.add(name)
        return border.whole[: self._count(border, name), : border.width]

    def finish(self) -> None:
        """Return when the step is done and the logits are written."""
        self._wait_for_stages()
        if self._logits is not None:
            made = self.sent(self._program.logits)
            if made.ctypes.data != self._logits.ctypes.data:
                np.copyto(self._logits, made)
        self._spans.end()

    def logits_memory(self, rows: int, vocab_size: int) -> NDArray[np.float32]:
        """Where the logits of a step come to, if rows lie side by side there, so that nobody copies them on."""
        border = self._borders[self._program.logits]
        memory = border.whole[:rows, :vocab_size]
        return memory if memory.flags.c_contiguous and len(memory) == rows else np.empty((rows, vocab_size), np.float32)

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step, where all of the program is here."""
        self.begin(batch, logits)
        for number in range(len(self._stages)):
            self.run_stage(number)
        self.finish()

    @property
    def peaks(self) -> NDArray[np.float32] | None:
        """The largest of every 16 logits of the last step, f32[R, ..] in whole cache lines; None for states."""
        return self.sent(PEAKS) if PEAKS in self._borders else None

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a tapped value was in the last step."""
        self._check_open()
        return self.sent(name)

    def _count(self, border: Border, name: str = "") -> int:
        rows = sum(border.rows(group) for group in self._groups)
        return rows * self._assembly.decode.lowered.low.most_rows(name, Sizes(1, 1, 1)) if name else rows

    def _check_fits(self, batch: StepBatch) -> None:
        assert len(batch.ids) <= self._most.tokens, (len(batch.ids), self._most.tokens)
        if len(batch.logit_rows) > self._most.rows:
            raise ResourceError(
                f"logits of {len(batch.logit_rows)} tokens are asked for at once, and the GPU has room for those of "
                f"{self._most.rows}: ask for fewer, or load with a larger max_num_seqs="
            )

    # --- pages and facts ---

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""
        self._check_open()
        self._assembly.pages.copy(source, target)

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]."""
        self._check_open()
        self._assembly.pages.read(page, out)

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave."""
        self._check_open()
        self._assembly.pages.write(page, data)

    def trace(self, on: bool) -> None:
        """Record from the next step on when each kernel ran, or stop; traced steps wait for each."""
        self._spans.on = on

    def spans(self) -> list[Span]:
        """What was recorded and not asked for yet."""
        return self._spans.take()

    def info(self) -> dict[str, str | int]:
        """Facts for people."""
        return self._assembly.facts

    def _check_open(self) -> None:
        if self._closed:
            raise ResourceError("this model is closed; load it again")

    def close(self) -> None:
        """Let go of the device's memory; may be called twice."""
        if not self._closed:
            self._closed = True
            self._recordings.clear()
            self._borders.clear()
            self._assembly.release()
