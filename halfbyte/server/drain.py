"""`Drain`: how many requests are under way, and how a server comes to an end without breaking them off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from .errors import SERVER, ApiError


class Drain:
    """Counts requests. Once `begin` was called there are no new ones. Used in the event loop's thread alone."""

    def __init__(self) -> None:
        self.running = 0
        self.begun = False
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        """Take no more requests."""
        self.begun = True

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """One request. Raises `ApiError` once draining."""
        if self.begun:
            raise ApiError(
                503,
                "the server is shutting down and takes no more requests",
                kind=SERVER,
                code="shutting_down",
                headers={"retry-after": "5"},
            )
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()

    async def idle(self, timeout: float) -> bool:
        """Whether all requests ended within `timeout` seconds."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout)
        except TimeoutError:
            return False
        return True
