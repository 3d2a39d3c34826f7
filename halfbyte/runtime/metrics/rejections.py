"""`Rejections`: requests that were not taken, counted in the threads of those who asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...errors import ContextExceededError, KvBudgetExceededError, QueueFullError, RequestError
from .metrics import REJECTIONS

P = ParamSpec("P")
R = TypeVar("R")

_REASONS: dict[type[RequestError], str] = {
    ContextExceededError: "context_exceeded",
    KvBudgetExceededError: "kv_budget_exceeded",
    QueueFullError: "queue_full",
}


class Rejections:
    """Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = dict.fromkeys(REJECTIONS, 0)

    def add(self, error: RequestError) -> None:
        """Count a request that ended in `error` before it began."""
        with self._lock:
            self._counts[_REASONS.get(type(error), "bad_prompt")] += 1

    def counts(self) -> dict[str, int]:
        """By reason, all of them."""
        with self._lock:
            return dict(self._counts)


class Rejecting(Protocol):
    """Who refuses requests; while `closed` all of them, which are not counted."""

    rejections: Rejections

    @property
    def closed(self) -> bool:
        """Whether it takes no more requests."""


S = TypeVar("S", bound=Rejecting)


def counted(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that takes a request; what it refuses is counted."""

    @wraps(method)
    def counting(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except RequestError as error:
            if not self.closed:
                self.rejections.add(error)
            raise

    return counting
