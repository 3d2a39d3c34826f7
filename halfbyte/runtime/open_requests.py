"""`OpenRequests`: who waits for an answer, and how each of them hears of its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from time import perf_counter

from ..errors import DeadlineExceededError
from .metrics.meter import Meter
from .request import Request
from .scheduler import Scheduler
from .sequence import Chosen, Sequence
from .step import StepPlan


class OpenRequests:
    """The requests of a scheduler's sequences. Used by the engine's thread; anyone may ask how many there are."""

    def __init__(self, scheduler: Scheduler, meter: Meter) -> None:
        self._scheduler = scheduler
        self._meter = meter
        self._requests: dict[int, Request] = {}
        self._timed: list[Request] = []

    def __len__(self) -> int:
        return len(self._requests)

    def sequences(self) -> list[Sequence]:
        """All that have not ended."""
        return [request.sequence for request in self._requests.values()]

    def add(self, request: Request) -> None:
        """Take a request in and queue its sequence."""
        self._requests[request.sequence.arrival] = request
        if request.deadline < math.inf:
            self._timed.append(request)
        self._scheduler.add(request.sequence)

    def start(self, plan: StepPlan) -> None:
        """Note which of a plan's sequences are computed for the first time."""
        for sequence, _, _ in plan.shares:
            request = self._requests[sequence.arrival]
            if request.started_at is None:
                request.started_at = perf_counter()
                sequence.num_cached = sequence.num_computed  # less than once, where it was put back before it began
                self._meter.started(sequence)

    def emit(self, plan: StepPlan, chosen: dict[int, list[Chosen]]) -> Iterator[Sequence]:
        """Hand out what a step brought; gives the sequences that have ended."""
        now = perf_counter()
        for sequence, _, _ in plan.shares:
            tokens = chosen.get(sequence.arrival)
            request = self._requests.get(sequence.arrival)
            if request is None or (tokens is None and not sequence.done):
                continue
            if sequence.done:
                del self._requests[sequence.arrival]
                self._meter.end(request)
            self._post(request, tokens or [], now)
            if sequence.done:
                yield sequence

    def drop(self, sequence: Sequence, error: Exception) -> bool:
        """End a request with an error; False where it has ended before."""
        request = self._requests.pop(sequence.arrival, None)
        if request is None:
            return False
        self._scheduler.remove(sequence)
        self._meter.end(request, error)
        request.fail(error)
        return True

    def late(self) -> list[tuple[Sequence, DeadlineExceededError]]:
        """The sequences whose time is over, and what to tell their callers."""
        if not self._timed:
            return []
        now = perf_counter()
        self._timed = [request for request in self._timed if not request.sequence.gone]
        return [(request.sequence, _too_late(request)) for request in self._timed if now > request.deadline]

    def _post(self, request: Request, tokens: list[Chosen], now: float) -> None:
        sequence = request.sequence
        given = tokens[:-1] if tokens and tokens[-1].token in sequence.eog_ids else tokens
        self._meter.emitted(request, len(given), now)
        for chosen in given[:-1]:
            request.post(chosen, ended=False, at=now)
        request.post(given[-1] if given else None, ended=sequence.done, at=now)


def _too_late(request: Request) -> DeadlineExceededError:
    seconds = request.deadline - request.submitted_at
    return DeadlineExceededError(f"no whole answer within timeout={seconds:g} s")
