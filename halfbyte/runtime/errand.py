"""`Errand`: something the engine's thread does for another that waits for it."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from .request import wait_for

T = TypeVar("T")


class Errand(Generic[T]):
    """A function to be called once, and its outcome.

    No `Future`: one whose waiting thread is interrupted by Ctrl-C may stay locked, and whoever answers it then waits
    for ever.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._outcome: SimpleQueue[Callable[[], T]] = SimpleQueue()

    def run(self) -> None:
        """Call the function; what it raises belongs to whoever waits."""
        try:
            result = self._function()
        except BaseException as error:
            self.refuse(error)
        else:
            self._outcome.put(lambda: result)

    def refuse(self, error: BaseException) -> None:
        """Let the error be all that comes of it."""

        def fail() -> T:
            raise error

        self._outcome.put(fail)

    def wait(self) -> T:
        """What the function returned or raised, or the error it was refused with."""
        return wait_for(self._outcome)()
