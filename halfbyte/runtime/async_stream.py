"""`AsyncStream`: the events of one answer as they come, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from .assembly import Assembly
from .completion import Completion, StreamEvent
from .engine import Engine


class Bell:
    """Wakes a coroutine from the engine's thread; rings on when its event loop is gone."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Called in any thread."""
        with contextlib.suppress(RuntimeError):  # the event loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, ready: Callable[[], StreamEvent | None]) -> StreamEvent:
        """What `ready` gives, asked at each ring until it gives something."""
        while True:
            self._event.clear()
            event = ready()
            if event is not None:
                return event
            await self._event.wait()


class AsyncStream(AsyncIterator[StreamEvent]):
    """An asynchronous iterator of `StreamEvent`s. `aclose`, leaving its `async with`, a cancelled task or nobody
    holding it any more cancels the request. One task at a time may use it.
    """

    def __init__(self, engine: Engine, assembly: Assembly, bell: Bell) -> None:
        self._engine = engine  # an engine lives as long as somebody waits for an answer
        self._assembly = assembly
        self._bell = bell
        self._cancel = engine.canceller(self, assembly.request)
        self._ended = False

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The tokens that the answer follows."""
        return self._assembly.prompt_ids

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._ended:
            raise StopAsyncIteration
        self._engine.check_caller()
        try:
            event = await self._bell.wait(self._next_event)
        except BaseException:
            await self.aclose()
            raise
        if self._assembly.ended:
            await self.aclose()
        return event

    async def aclose(self) -> None:
        """Cancel what is left; may be called twice."""
        self._ended = True
        self._cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def collect(self) -> Completion:
        """Wait for the end; everything that had not been taken yet as one `Completion`."""
        return self._assembly.completion([event async for event in self])

    def _next_event(self) -> StreamEvent | None:
        while (emission := self._assembly.request.poll()) is not None:
            event = self._assembly.push(emission)
            if event is not None:
                return event
        return None
