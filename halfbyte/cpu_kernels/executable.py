"""`CpuExecutable`: a program lowered, packed and placed on this machine."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from ..model.backend import Progress, Span, Weight
from ..model.kv_types import KvTypes
from ..model.program import Program, RopeTable, StepBatch
from . import isa as isas
from . import threads as teams
from .arena import Arena
from .calls import Peaks
from .instruction import PEAK_ROWS, peaks_bytes
from .kv_layout import PAGE_LEN
from .kv_pages import KvPages
from .loader import LoadedKernels
from .lower import Lowering
from .needed import needed_kernels
from .packing import pack_all, packed_bytes, unplaced
from .place import Placed, Plan
from .selection import Best, Selection
from .step_memory import operands_of, step_memory
from .token_scales import TokenScales, program_adapters
from .version import Part, Versions
from .weight_roles import matrices_of, tables_of
from .word_rows import WordRows

log = logging.getLogger("halfbyte.cpu_kernels")


def build(
    program: Program,
    weights: Mapping[str, Weight],
    *,
    n_pages: int,
    max_tokens: int,
    threads: int | None = None,
    isa: str | None = None,
    kv: KvTypes | None = None,
    progress: Progress | None = None,
) -> CpuExecutable:
    """Compile (or load) kernels, pack the weights and plan the memory of a program.

    `n_pages` KV pages of 16 tokens in all, of halves or the types `kv`, `max_tokens` the most tokens of a step. Raises
    `ConfigError`, `UnsupportedError` for an isa or op this machine lacks, `ResourceError`.
    """
    chosen = isas.detect() if isa is None else isas.named(isa)
    return CpuExecutable(program, weights, n_pages, max_tokens, teams.count(threads), chosen, kv or KvTypes(), progress)


class CpuExecutable:
    """See `model.backend.Executable`. One thread at a time may call `run` or `top_k`."""

    page_len = PAGE_LEN
    _ends: tuple[int, ...] = ()
    """Numbers of the ops before which a step may stop and go on later."""

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
    ) -> None:
        self.n_pages, self.max_tokens = n_pages, max_tokens
        self._program, self._weights = program, dict(weights)
        matrices, layouts = matrices_of(program, weights), unplaced(program, weights)
        self._tables = tables_of(program, weights)
        formats = {name: table.format for name, table in self._tables.items()}
        lowering = Lowering(program, layouts, formats, max_tokens, kv)
        self._kernels = LoadedKernels(isa, needed_kernels(lowering.calls, matrices.values()), progress)
        self._team = teams.Team(threads, self._kernels)
        weakref.finalize(self, self._team.dismiss)
        try:
            self._prepare(lowering, matrices, threads, progress)
        except BaseException:
            self._team.close()
            raise
        self._batch: StepBatch | None = None
        self._logits: NDArray[np.float32] | None = None
        self._selection = Selection(self._kernels.addresses["top_k"])
        self._expected: tuple[int, ...] = ()
        self._selected: tuple[int, ...] = ()
        self._steps, self._tracing = 0, False
        self._closed = False
        self._lock = threading.Lock()

    def _prepare(
        self, lowering: Lowering, matrices: Mapping[str, Weight], threads: int, progress: Progress | None
    ) -> None:
        self._weight_arena = Arena(sum(map(packed_bytes, lowering.packed.values())), "the packed weights")
        kernels = self._kernels.addresses
        self._packed = pack_all(matrices, lowering.packed, self._weight_arena, self._team, kernels, progress)
        self._scales = TokenScales(program_adapters(lowering.calls), self.max_tokens)
        self._placed = self._place(Plan(lowering), threads)
        self._versions = Versions(self._placed, kernels, threads, self._ends)
        self._version = self._versions.whole
        self._words = WordRows(self._program, self._weights, self._tables, self._placed)
        self._taps = {name: self._placed.view(name)[:, : self._program.widths[name]] for name in self._program.taps()}
        self._notes_peaks = any(isinstance(operand, Peaks) for operand in operands_of(lowering.calls))

    def _place(self, plan: Plan, threads: int) -> Placed:
        size = step_memory(plan, self._weights, threads, self.max_tokens)
        arena = Arena(size.total, "the buffers of a step")
        self._kv = KvPages(self._program.kv_layers, self.n_pages, plan.lowering.kv)
        self.page_bytes = self._kv.page_bytes
        angles: dict[tuple[RopeTable, str], int] = {}
        for table, n_bytes in size.angles.items():
            angles[table, "angles"] = arena.take(n_bytes)
            angles[table, "inv_freq"] = arena.put(np.asarray(table.inv_freq), 0)
        constants = {name: arena.put(vector, 32) for name, vector in size.vectors.items()}
        pieces = [arena.take(size) for size in plan.sizes]
        kv, work, state = self._kv.places, arena.take(size.scratch * threads), self._team.address
        rows = {name: table.data.ctypes.data for name, table in self._tables.items()}
        together = arena.take(size.together)
        self._peaks = np.zeros(peaks_bytes(self._program.vocab_size) // 4, np.float32)
        peaks = self._peaks.ctypes.data
        matrices, scales = self._packed, self._scales.address
        given = plan, arena, pieces, constants, matrices, rows, kv, angles
        return Placed(*given, work, size.scratch, together, state, peaks, scales)

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step; writes `logits` f32[R, V], row r for token `batch.logit_rows[r]`."""
        with self._lock:
            self._begin(batch, logits)
            self._run_part(self._version.parts[0], self._along(logits))
            self._steps += 1

    def _begin(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Make everything ready that is not computed by kernels."""
        assert len(batch.ids) <= self.max_tokens, (len(batch.ids), self.max_tokens)
        self._check_open()
        self._words.put(batch)
        self._point_to(batch, logits)
        self._version = self._versions.of(batch.adapter_scales)
        if logits is not None:
            assert logits.flags.c_contiguous
            assert logits.dtype == np.float32
            self._version.point_to(logits)

    def _along(self, logits: NDArray[np.float32]) -> int:
        """How many instructions behind the program choose from its logits."""
        return self._version.select_along(logits, self._chosen_along(logits), self._peaks)

    def _run_part(self, part: Part, along: int = 0) -> None:
        trace = part.trace if self._tracing else None
        if part.length + along:
            self._team.run(part.words, part.length + along, None if trace is None else trace.stamps)
        if trace is not None:
            trace.keep(self._steps)

    def expect(self, ks: Sequence[int]) -> None:
        """Say what `top_k_rows` will ask of the next step's logits, so that they are found while they are at hand."""
        self._expected = tuple(ks)

    def _chosen_along(self, logits: NDArray[np.float32]) -> tuple[int, ...]:
        """What is expected of each row, where the step can find it."""
        ks, self._expected = self._expected, ()
        fits = self._notes_peaks and len(ks) == len(logits) <= PEAK_ROWS and not self._tracing
        self._selected = ks if fits and any(ks) else ()
        return self._selected

    def _point_to(self, batch: StepBatch, logits: NDArray[np.float32] | None) -> None:
        """Tell the kernels where the arrays of a step are."""
        team = self._team
        team.set("tokens", len(batch.ids))
        team.set("rows", len(batch.logit_rows))
        if batch is not self._batch:  # the same arrays again, step after step, while their shapes stay
            self._batch = batch
            team.set("max_pages", batch.page_table.shape[1])
            for name in _ARRAYS:
                team.set(name, getattr(batch, name).ctypes.data)
        self._logits = logits
        self._scales.put(batch)

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a tapped value was in the last step: a view of as many rows as it had then, until the next step."""
        self._check_open()
        assert self._batch is not None, "no step was run"
        lowering = self._placed.plan.lowering
        count, route = (
            len(self._batch.logit_rows if lowering.per_row(name) else self._batch.ids),
            lowering.route_of(name),
        )
        return self._taps[name][: count * (1 if route is None else route.used)]

    def top_k(self, logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best of f32[V], best first; among equals the lower id first. NaN and -inf are never chosen."""
        best = self.top_k_rows(np.ascontiguousarray(logits)[None], [k])[0]
        assert best is not None, "k is at least 1"
        return best

    def top_k_rows(
        self, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32] | None = None
    ) -> list[Best | None]:
        """`top_k` of each row of f32[R, V] with its own k, None for 0; rows are shared out among the threads.

        The logits of the last step as they are, or any others in another array, where known with their `peaks`.
        """
        with self._lock:
            self._check_open()
            if logits is not self._logits:
                return self._selection.rows(self._team, logits, ks, peaks)
            # Who asks for rows of the last step has not changed them.
            if self._selected and self._selected == tuple(ks):
                return self._version.along.collect(logits, ks)
            noted = self._notes_peaks and len(logits) <= PEAK_ROWS
            return self._selection.rows(self._team, logits, ks, self._peaks if noted else None)

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""
        self._kv.copy(source, target)

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]."""
        self._check_open()
        assert out.shape == (self.page_bytes,), out.shape
        self._kv.read(page, out)

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave, by this or another executable of the same program."""
        self._check_open()
        assert data.shape == (self.page_bytes,), data.shape
        self._kv.write(page, data)

    def trace(self, on: bool) -> None:
        """Record from the next step on, or stop."""
        with self._lock:
            self._tracing = on

    def spans(self) -> list[Span]:
        """What was recorded since the last call."""
        with self._lock:
            return self._versions.spans()

    def info(self) -> dict[str, str | int]:
        """Facts for people. `packed_bytes` is what decoding one token reads of the weights."""
        families = sorted({weight.family for weight in self._packed.values()})
        return {
            "backend": "cpu",
            "isa": self._kernels.isa.name,
            "kernels": " ".join(families),
            "kernels_compiled": self._kernels.compiled,
            "threads": self._team.threads,
            "packed_bytes": sum(weight.used * weight.n_bytes for weight in self._packed.values()),
            "kv_bytes": self._kv.arena.size,
            "buffer_bytes": self._placed.arena.size,
        }

    def _check_open(self) -> None:
        if self._closed:
            raise ResourceError("this model is closed; load it again")

    def close(self) -> None:
        """Stop the threads and let go of the memory; may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._team.close()
            del self._placed, self._weight_arena, self._kv, self._taps, self._words
            del self._versions, self._version
            self._weights.clear()
            self._tables.clear()


_ARRAYS = ("ids", "positions", "seq_of", "slots", "page_table", "seq_len", "logit_rows")
