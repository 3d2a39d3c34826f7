"""`Request`: a sequence on its way through the engine, and the mailbox its caller waits at."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import NamedTuple, TypeVar

from ..errors import HalfbyteError, RequestError, ResourceError
from .sequence import Chosen, FinishReason, Sequence

T = TypeVar("T")


STEP_FAILED = "a step of the engine failed"
"""So begins what is said of an error that no request is to blame for."""


class Emission(NamedTuple):
    """What a step brought: a token, the end, or both. `at` is in seconds of `perf_counter`."""

    chosen: Chosen | None
    ended: bool
    at: float
    error: HalfbyteError | None = None


# A wait without a limit cannot be interrupted by Ctrl-C on Windows.
_WAIT_S = 0.1 if sys.platform == "win32" else None


class Request:
    """Made by any thread; the engine's thread posts to it, one other thread receives.

    `timeout` is in seconds from now. `notify` is called in the engine's thread whenever something was
    posted. A caller who has all that is wanted of the answer sets `satisfied`.
    """

    def __init__(
        self, sequence: Sequence, *, timeout: float | None = None, notify: Callable[[], None] | None = None
    ) -> None:
        self.sequence = sequence
        self.submitted_at = perf_counter()
        self.deadline = math.inf if timeout is None else self.submitted_at + timeout
        self.started_at: float | None = None
        self.emitted_at: float | None = None
        self.satisfied = False
        self._notify = notify
        self._mailbox: SimpleQueue[Emission] = SimpleQueue()

    def post(self, chosen: Chosen | None, *, ended: bool, at: float) -> None:
        """Hand a token, the end, or both to the caller."""
        self._put(Emission(chosen, ended, at))

    def fail(self, error: Exception) -> None:
        """End with an error, which the caller's thread raises."""
        self._put(Emission(None, True, perf_counter(), _typed(error)))

    def receive(self) -> Emission:
        """The next emission, waited for; raises the error of a request that failed."""
        return _unless_failed(wait_for(self._mailbox))

    def poll(self) -> Emission | None:
        """The next emission if there is one; raises as `receive`."""
        try:
            return _unless_failed(self._mailbox.get_nowait())
        except Empty:
            return None

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the engine ended it; None before the end."""
        return self.sequence.finish_reason

    def _put(self, emission: Emission) -> None:
        self._mailbox.put(emission)
        if self._notify is not None:
            self._notify()


def wait_for(box: SimpleQueue[T]) -> T:
    """The next thing in a box; Ctrl-C ends the wait."""
    while True:
        try:
            return box.get(timeout=_WAIT_S)
        except Empty:
            continue


def _unless_failed(emission: Emission) -> Emission:
    if emission.error is not None:
        raise emission.error
    return emission


def _typed(error: Exception) -> HalfbyteError:
    if isinstance(error, HalfbyteError):
        return error
    if isinstance(error, MemoryError):
        typed: HalfbyteError = ResourceError("memory ran out during a step; a smaller context or batch needs less")
    else:
        typed = RequestError(f"{STEP_FAILED}: {type(error).__name__}: {error}")
    typed.__cause__ = error
    return typed
