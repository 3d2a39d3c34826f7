"""`Inbox`: what other threads ask of the engine's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import RLock
from typing import Any, TypeVar

from ..errors import QueueFullError, RequestError
from .errand import Errand
from .request import Request

T = TypeVar("T")

CLOSED = "the model is closed: load it again"


class Inbox:
    """Any thread puts in, the engine's takes out.

    Ctrl-C may come between any two lines of Python, and what it leaves half done must hold up nobody: `with` a lock
    that is no Python object is safe, and so is putting in a `SimpleQueue`, while a `Condition` may lose who waits.
    """

    def __init__(self) -> None:
        self.submitted: deque[Request] = deque()
        self.cancelled: deque[Request] = deque()
        self.calls: deque[Errand[Any]] = deque()
        self._lock = RLock()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether nothing is taken any more."""
        return self._stopping

    def submit(self, requests: list[Request], *, num_open: Callable[[], int], most_open: float) -> None:
        """Queue requests, all or none.

        Raises `QueueFullError` where more than `most_open` would not have ended, `RequestError` once stopped.
        """
        with self._lock:
            if self._stopping:
                raise RequestError(CLOSED)
            waiting = num_open() + len(self.submitted)
            if waiting + len(requests) > most_open:
                raise QueueFullError(
                    f"{waiting} requests run or wait, and max_queued allows {most_open:g}: try again later"
                )
            self.submitted.extend(requests)
            self._ring()

    def cancel(self, request: Request) -> None:
        """Drop a request before the next step. Takes no lock: garbage collection may call it at any point.

        Nobody needs to be woken: while a request has something to cancel, the loop is not asleep.
        """
        self.cancelled.append(request)

    def call(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises in the engine's thread, between two steps.

        Raises `RequestError` once stopped.
        """
        errand = Errand(function)
        with self._lock:
            if self._stopping:
                raise RequestError(CLOSED)
            self.calls.append(errand)
            self._ring()
        return errand.wait()

    def stop(self) -> None:
        """Take nothing any more."""
        with self._lock:
            self._stopping = True
            self._ring()

    def wait(self) -> None:
        """Sleep until there is something, or the end."""
        while not (self.submitted or self.calls or self._stopping):
            self._bell.get()

    def pause(self, seconds: float) -> None:
        """Sleep until something comes, or the end, for so long at most."""
        with suppress(Empty):
            self._bell.get(timeout=seconds)

    def _ring(self) -> None:
        # One ring is enough: whoever hears it looks for everything that was put in before.
        if self._bell.empty():
            self._bell.put(None)

    def answer_calls(self) -> None:
        """Run the functions that others wait for."""
        while self.calls:
            self.calls.popleft().run()

    def refuse_calls(self) -> None:
        """Let nobody wait for ever."""
        while self.calls:
            self.calls.popleft().refuse(RequestError(CLOSED))
