"""`EngineLoop`: what the engine's thread runs."""

from __future__ import annotations

import logging
from collections import deque
from threading import Condition
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..errors import CancelledError
from ..model.backend import Executable
from .pages import PagePool
from .request import Request
from .scheduler import Scheduler
from .step import BatchBuilder, StepPlan

log = logging.getLogger("halfbyte.engine")


class EngineLoop:
    """Schedule, run, sample, commit, emit, until told to stop; asleep while nothing is asked for.

    Other threads touch `submit`, `cancel` and `stop` alone. It knows nothing of `Engine`, so that an engine nobody
    holds any more is collected and stops it.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        vocab_size: int,
        context: int,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        prefix_cache: bool = True,
    ) -> None:
        pool = PagePool(executable.n_pages, keep=prefix_cache)
        limits = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": max_num_batched_tokens}
        self.scheduler = Scheduler(pool, **limits)
        self._executable = executable
        self._builder = BatchBuilder(
            context=context, page_len=executable.page_len, max_tokens=max_num_batched_tokens, max_seqs=max_num_seqs
        )
        self._logits = np.empty((max_num_seqs, vocab_size), np.float32)
        self._requests: dict[int, Request] = {}
        self._wake = Condition()
        self._submitted: deque[Request] = deque()
        self._cancelled: deque[Request] = deque()
        self._stopping = False

    def submit(self, request: Request) -> bool:
        """Queue a request; False once stopped."""
        with self._wake:
            if not self._stopping:
                self._submitted.append(request)
                self._wake.notify()
            return not self._stopping

    def cancel(self, request: Request) -> None:
        """Drop a request before the next step. Takes no lock: garbage collection may call it at any point.

        Nobody needs to be woken: while a request has something to cancel, the loop is not asleep.
        """
        self._cancelled.append(request)

    def stop(self) -> None:
        """Let the loop end after the step under way."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def run(self) -> None:
        """The thread's whole life."""
        try:
            while self._gather():
                self._step()
        finally:
            self.stop()
            for request in (*self._requests.values(), *self._submitted):
                request.fail(CancelledError("the model was closed before the request ended"))
            self._requests.clear()
            self._executable.close()

    def _gather(self) -> bool:
        """Take in what other threads asked for, asleep until there is something to do; False at the end."""
        if self.scheduler.idle and not self._submitted:
            with self._wake:
                while not (self._submitted or self._stopping):
                    self._wake.wait()
        while self._submitted:
            request = self._submitted.popleft()
            self._requests[request.sequence.arrival] = request
            self.scheduler.add(request.sequence)
        while self._cancelled:
            self._drop(self._cancelled.popleft(), CancelledError("the request was cancelled"))
        return not self._stopping

    def _step(self) -> None:
        plan = StepPlan([])
        try:
            plan = self.scheduler.schedule()
            logits = self._compute(plan)
            tokens = self._sample(plan, logits)
            self.scheduler.commit(plan, tokens)
            self._emit(plan, tokens)
        except Exception as error:  # the engine outlives whatever a step meets
            log.debug("a step failed", exc_info=True)
            affected = [self._requests.get(share.sequence.arrival) for share in plan.shares] or [
                *self._requests.values()
            ]
            for request in affected:
                if request is not None:
                    self._drop(request, error)

    def _compute(self, plan: StepPlan) -> NDArray[np.float32]:
        if not plan.shares:
            return self._logits[:0]
        self._note_starts(plan)
        batch = self._builder.build(plan)
        sequence, count, _ = plan.shares[0]
        if sequence.scores is not None:
            logits = sequence.scores[sequence.num_computed : sequence.num_computed + count]
        else:
            logits = self._logits[: len(batch.logit_rows)]
        self._executable.run(batch, logits)
        return logits

    def _note_starts(self, plan: StepPlan) -> None:
        for sequence, _, _ in plan.shares:
            if sequence.num_computed == sequence.num_cached:
                request = self._requests[sequence.arrival]
                request.started_at = request.started_at or perf_counter()

    def _sample(self, plan: StepPlan, logits: NDArray[np.float32]) -> dict[int, int]:
        """The chosen tokens by arrival; a sequence whose row cannot be sampled ends alone."""
        tokens: dict[int, int] = {}
        row = 0
        for sequence, _, rows in plan.shares:
            if rows and sequence.sampler is not None:
                try:
                    tokens[sequence.arrival] = sequence.sampler.sample(logits[row], sequence.num_tokens)
                except Exception as error:
                    log.debug("sampling failed", exc_info=True)
                    self._drop(self._requests[sequence.arrival], error)
            row += rows
        return tokens

    def _emit(self, plan: StepPlan, tokens: dict[int, int]) -> None:
        now = perf_counter()
        for sequence, _, _ in plan.shares:
            token = tokens.get(sequence.arrival)
            if token is None and not sequence.done:
                continue
            request = self._requests.get(sequence.arrival)
            if request is None:
                continue
            if sequence.done:
                del self._requests[sequence.arrival]
            request.post(None if sequence.finish_reason == "stop" else token, ended=sequence.done, at=now)

    def _drop(self, request: Request, error: Exception) -> None:
        if self._requests.pop(request.sequence.arrival, None) is not None:
            self.scheduler.remove(request.sequence)
            request.fail(error)
