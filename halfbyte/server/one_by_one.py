"""`OneByOne`: work that holds up no request but its like, and waits in a queue of limited length."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..errors import QueueFullError

T = TypeVar("T")


class OneByOne:
    """Runs functions in a thread of its own, at most `most` waiting. Used in the event loop's thread alone.

    Not asyncio's own threads: a few long ones among them would keep chats from being tokenized.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(1, "halfbyte-server")
        self._most = most
        self._open = 0

    async def run(self, function: Callable[[], T]) -> T:
        """What `function` gives. A task that is cancelled takes it out of the queue. Raises `QueueFullError`."""
        if self._open > self._most:
            raise QueueFullError(f"{self._open} such requests run or wait: try again later")
        self._open += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, function)
        finally:
            self._open -= 1
