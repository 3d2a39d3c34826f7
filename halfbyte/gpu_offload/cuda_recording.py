"""What was captured from a stream, as a graph that is launched at once."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager

from .cuda_driver import CAPTURE_RELAXED, CudaError, Driver
from .cuda_memory import in_context


class CudaRecording:
    """A graph ready to run; `use` makes the context of its device current."""

    def __init__(
        self, driver: Driver, use: Callable[[], AbstractContextManager[None]], stream: int, graph: int
    ) -> None:
        self._driver = driver
        self._use = use
        self._stream = stream
        self._executable = driver.handle("cuGraphInstantiateWithFlags", graph, 0)
        driver.call("cuGraphUpload", self._executable, stream)

    def destroyed_in(self, context: int) -> CudaRecording:
        """The same, whose graph is destroyed in `context` when it is dropped."""
        end = weakref.finalize(self, in_context, self._driver, context, "cuGraphExecDestroy", self._executable)
        end.atexit = False
        return self

    def replay(self) -> None:
        """Enqueue all of it."""
        with self._use():
            self._driver.call("cuGraphLaunch", self._executable, self._stream)


def capture(driver: Driver, stream: int, enqueue: Callable[[], None]) -> int:
    """The graph of what `enqueue` enqueues; the caller destroys it."""
    driver.call("cuStreamBeginCapture_v2", stream, CAPTURE_RELAXED)
    try:
        enqueue()
    except BaseException:
        # The capture has to end before the error goes on; what it gives is of no use.
        with contextlib.suppress(CudaError):
            graph = driver.handle_last("cuStreamEndCapture", stream)
            if graph:
                driver.call("cuGraphDestroy", graph)
        raise
    return driver.handle_last("cuStreamEndCapture", stream)
