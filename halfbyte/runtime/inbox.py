"""`Inbox`: what other threads ask of the engine's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition
from typing import Any, TypeVar

from ..errors import QueueFullError, RequestError
from .request import Request

T = TypeVar("T")

CLOSED = "the model is closed: load it again"


class Inbox:
    """Any thread puts in, the engine's takes out."""

    def __init__(self) -> None:
        self.submitted: deque[Request] = deque()
        self.cancelled: deque[Request] = deque()
        self.calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._wake = Condition()
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether nothing is taken any more."""
        return self._stopping

    def submit(self, requests: list[Request], *, num_open: Callable[[], int], most_open: float) -> None:
        """Queue requests, all or none.

        Raises `QueueFullError` where more than `most_open` would not have ended, `RequestError` once stopped.
        """
        with self._wake:
            if self._stopping:
                raise RequestError(CLOSED)
            waiting = num_open() + len(self.submitted)
            if waiting + len(requests) > most_open:
                raise QueueFullError(
                    f"{waiting} requests run or wait, and max_queued allows {most_open:g}: try again later"
                )
            self.submitted.extend(requests)
            self._wake.notify()

    def cancel(self, request: Request) -> None:
        """Drop a request before the next step. Takes no lock: garbage collection may call it at any point.

        Nobody needs to be woken: while a request has something to cancel, the loop is not asleep.
        """
        self.cancelled.append(request)

    def call(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises in the engine's thread, between two steps.

        Raises `RequestError` once stopped.
        """
        future: Future[T] = Future()
        with self._wake:
            if self._stopping:
                raise RequestError(CLOSED)
            self.calls.append((function, future))
            self._wake.notify()
        return future.result()

    def stop(self) -> None:
        """Take nothing any more."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def wait(self) -> None:
        """Sleep until there is something, or the end."""
        with self._wake:
            while not (self.submitted or self.calls or self._stopping):
                self._wake.wait()

    def pause(self, seconds: float) -> None:
        """Sleep until somebody calls, or the end, for so long at most."""
        with self._wake:
            self._wake.wait_for(lambda: self.calls or self._stopping, seconds)

    def answer_calls(self) -> None:
        """Run the functions that others wait for."""
        while self.calls:
            function, future = self.calls.popleft()
            try:
                future.set_result(function())
            except BaseException as error:  # it belongs to whoever waits
                future.set_exception(error)

    def refuse_calls(self) -> None:
        """Let nobody wait for ever."""
        while self.calls:
            self.calls.popleft()[1].set_exception(RequestError(CLOSED))
