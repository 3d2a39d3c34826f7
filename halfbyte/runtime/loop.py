"""`EngineLoop`: what the engine's thread runs."""

from __future__ import annotations

import logging
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..errors import CancelledError
from ..model.backend import Executable, OwnsLogits
from .cache.disk_cache import DiskCache
from .cache.disk_tier import DiskTier
from .cache.pages import PagePool
from .cache.swap_file import SwapFile
from .cache.swap_places import SwapPlaces
from .inbox import Inbox
from .limits import MOST_DRAFTS, EngineLimits
from .metrics.meter import Meter, phase
from .moves import PageMover
from .open_requests import OpenRequests
from .pace import Pace
from .request import Request
from .sampling.candidates import Best
from .scheduler import Scheduler
from .sequence import Chosen, Sequence
from .speculation.speculation import Speculation
from .step import BatchBuilder, StepPlan

log = logging.getLogger("halfbyte.engine")

READ_ROWS = 64
"""Rows of logits that readers may get in a step."""
HELD_S = 0.01
"""Between two looks whether somebody can go on."""


class EngineLoop:
    """Schedule, run, sample, commit, emit, until told to stop; asleep while nothing is asked for.

    Other threads touch its `inbox` alone. It knows nothing of `Engine`, so that an engine nobody holds any more is
    collected and stops it.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        vocab_size: int,
        limits: EngineLimits,
        prefix_cache: bool = True,
        fingerprint: bytes = b"",
        swap_space: int = 0,
        disk: DiskCache | None = None,
        speculation: Speculation | None = None,
        num_adapters: int = 0,
    ) -> None:
        places = swap_space // executable.page_bytes
        self.inbox = Inbox()
        self.meter = Meter()
        self.scheduler = Scheduler(
            PagePool(executable.n_pages, keep=prefix_cache, fingerprint=fingerprint),
            max_num_seqs=limits.max_num_seqs,
            max_num_batched_tokens=limits.max_num_batched_tokens,
            max_read_rows=READ_ROWS,
            swap=SwapPlaces(places),
        )
        self.executable = executable
        self._disk = None if disk is None else self._tier(disk)
        self._mover = PageMover(executable, SwapFile(executable.page_bytes) if places else None)
        self._builder = BatchBuilder(
            context=limits.context,
            page_len=executable.page_len,
            max_tokens=limits.max_num_batched_tokens,
            max_seqs=limits.max_num_seqs,
            num_adapters=num_adapters,
        )
        self._pace = Pace(limits.prompt_stretch)
        self.speculation = Speculation([]) if speculation is None else speculation
        rows = limits.max_num_seqs * (1 + MOST_DRAFTS) + READ_ROWS
        self._logits = _memory(executable, min(rows, limits.max_num_batched_tokens), vocab_size)
        self.requests = OpenRequests(self.scheduler, self.meter)

    def _tier(self, disk: DiskCache) -> DiskTier:
        executable = self.executable
        return DiskTier(
            disk,
            self.scheduler.pool,
            read=executable.read_page,
            write=executable.write_page,
            page_bytes=executable.page_bytes,
        )

    def run(self) -> None:
        """The thread's whole life."""
        try:
            while self._gather():
                self.meter.begin()
                self._step()
        finally:
            self._end()

    def _end(self) -> None:
        self.inbox.stop()
        closed = CancelledError("the model was closed before the request ended")
        for sequence in self.requests.sequences():
            self._drop(sequence, closed)
        for request in self.inbox.submitted:
            request.fail(closed)
        self.inbox.refuse_calls()
        self._mover.close()
        if self._disk is not None:
            self._disk.close()
        self.speculation.close()
        self._logits = self._logits[:0].copy()  # it may be the executable's
        self.executable.close()

    def _gather(self) -> bool:
        """Take in what other threads asked for, asleep until there is something to do; False at the end."""
        inbox = self.inbox
        while self.scheduler.idle and not (inbox.submitted or inbox.stopping):
            self.speculation.forget()
            inbox.answer_calls()
            if self._disk is not None and self._disk.busy:
                self._disk.save_one()
            else:
                inbox.wait()
        num_cancelled = len(inbox.cancelled)  # counted first: what is cancelled now is known or among the submitted
        while inbox.submitted:
            self._take_in(inbox.submitted.popleft())
        for _ in range(num_cancelled):
            self._drop(inbox.cancelled.popleft().sequence, CancelledError("the request was cancelled"))
        inbox.answer_calls()
        for sequence, error in self.requests.late():
            self._drop(sequence, error)
        return not inbox.stopping

    def _take_in(self, request: Request) -> None:
        sequence = request.sequence
        if self._disk is not None and sequence.origin is None and sequence.reader is None:
            self._disk.restore([*sequence.labels((sequence.num_tokens - 1) // sequence.page_len)], sequence.seed)
        self.requests.add(request)

    def _drop(self, sequence: Sequence, error: Exception) -> None:
        if self.requests.drop(sequence, error):
            self._save_later(sequence)

    def _save_later(self, sequence: Sequence) -> None:
        if self._disk is not None and sequence.ended_at is not None:
            self._disk.note(sequence.ended_at)

    def save_evicted(self) -> None:
        """Bring what is about to be overwritten to safety; before any page is written to."""
        if self._disk is None:
            self.scheduler.pool.forget_evicted()
        else:
            self._disk.save_evicted()

    def _step(self) -> None:
        plan = StepPlan()
        try:
            self.speculation.propose(self.scheduler.running)
            plan = self.scheduler.schedule(self._prompt_tokens())
            self._move(plan)
            logits, seconds = self._compute(plan)
            chosen = self._sample(plan, logits)
            self.speculation.learn(plan, chosen, seconds)
            self.scheduler.commit(plan)
            self._emit(plan, chosen)
            if not plan.shares:  # nobody can go on before pages that are held for a while come back
                self.inbox.pause(HELD_S)
        except Exception as error:  # the engine outlives whatever a step meets
            log.debug("a step failed", exc_info=True)
            self._give_up(plan, error)

    def _give_up(self, plan: StepPlan, error: Exception) -> None:
        """End the requests of a step that failed; of the others nothing may be taken for computed that is not."""
        affected = [share.sequence for share in plan.shares] or self.requests.sequences()
        affected += [sequence for sequence, _ in plan.swaps_in.values()]
        for sequence in affected:
            self._drop(sequence, error)
        for sequence, _ in plan.swaps_out:
            self.scheduler.forget_swap(sequence)

    def _prompt_tokens(self) -> int | None:
        answers = sum(sequence.num_new == 1 for sequence in self.scheduler.running)
        return self._pace.prompt_tokens(answers)

    @phase("move", after="schedule")
    def _move(self, plan: StepPlan) -> None:
        self.save_evicted()
        if plan.swaps_out or plan.copies or plan.swaps_in:
            for sequence, error in self._mover.move(plan, self.scheduler):
                self._drop(sequence, error)
                plan.shares = [share for share in plan.shares if share.sequence is not sequence]

    @phase("run")
    def _compute(self, plan: StepPlan) -> tuple[NDArray[np.float32], float]:
        """The logits asked for, and the seconds it took."""
        if not plan.shares:
            return self._logits[:0], 0.0
        started = perf_counter()
        self.meter.planned(plan)
        answers = 0
        self.requests.start(plan)
        for sequence, _, _ in plan.shares:
            answers += sequence.num_new == 1
        batch = self._builder.build(plan)
        logits = self._logits[: len(batch.logit_rows)]
        self.executable.expect(_selects(plan))
        self.executable.run(batch, logits)
        prompt = sum(num_tokens for sequence, num_tokens, _ in plan.shares if sequence.num_new > 1)
        seconds = perf_counter() - started
        if not any(sequence.drafts for sequence, _, _ in plan.shares):
            self._pace.note(answers, prompt, seconds)
        self.meter.computed(prompt)
        return logits, seconds

    @phase("sample")
    def _sample(self, plan: StepPlan, logits: NDArray[np.float32]) -> dict[int, list[Chosen]]:
        """The chosen tokens by arrival; a sequence whose rows cannot be used ends alone."""
        chosen: dict[int, list[Chosen]] = {}
        ks = _selects(plan)
        bests: list[Best | None] = [None] * len(ks)
        if any(ks):
            bests[:] = self.executable.top_k_rows(logits, ks)
        row = 0
        for sequence, _, count in plan.shares:
            span = slice(row, row + count)
            rows = logits[span]
            row += count
            if count == 0:
                continue
            try:
                if sequence.reader is not None:
                    sequence.reader.read(sequence.num_computed, rows)
                else:
                    chosen[sequence.arrival] = sequence.grow(rows, bests[span])
                    if count > 1:
                        self.meter.speculated(count - 1, sequence.drafts)
            except Exception as error:
                log.debug("sampling failed", exc_info=True)
                self._drop(sequence, error)
        return chosen

    @phase("emit", after="commit")
    def _emit(self, plan: StepPlan, chosen: dict[int, list[Chosen]]) -> None:
        for sequence in self.requests.emit(plan, chosen):
            self._save_later(sequence)


def _memory(executable: Executable, rows: int, vocab_size: int) -> NDArray[np.float32]:
    """Where steps write logits."""
    if isinstance(executable, OwnsLogits):
        return executable.logits_memory(rows, vocab_size)
    return np.empty((rows, vocab_size), np.float32)


def _selects(plan: StepPlan) -> list[int]:
    """How many of the best of each row of logits are all that its sampler looks at; 0 where it looks at more."""
    ks: list[int] = []
    for sequence, _, count in plan.shares:
        ks += [0 if sequence.sampler is None else sequence.sampler.selects] * count
    return ks
