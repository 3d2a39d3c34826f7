"""`EventStream`: an answer as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .errors import api_error
from .json_text import encode

log = logging.getLogger("halfbyte.server")

DONE = b"data: [DONE]\n\n"
COMMENT = b": still here\n\n"


class Event(NamedTuple):
    """One event; `name` is its type where the protocol has several."""

    data: dict[str, Any]
    name: str | None = None

    def encoded(self) -> bytes:
        """As it goes over the wire; JSON has no line break of its own."""
        head = b"" if self.name is None else b"event: " + self.name.encode() + b"\n"
        return head + b"data: " + encode(self.data) + b"\n\n"


class EventStream(Response):
    """Sends what `events` gives; an error of theirs becomes the last event. `done` closes with OpenAI's mark.

    While there is nothing to send for `keep_alive` seconds a comment goes out, for proxies that cut silent
    connections.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Event], *, keep_alive: float, done: bool = True) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._keep_alive, self._done = events, keep_alive, done
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all; whoever cancels this closes the events."""
        async with contextlib.aclosing(self._pieces()) as pieces:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            comments = asyncio.ensure_future(self._comment(send))
            try:
                async for piece in pieces:
                    await self._send(send, piece)
            finally:
                comments.cancel()
                await asyncio.gather(comments, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, piece: bytes) -> None:
        self._sent_at = time.monotonic()
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _comment(self, send: Send) -> None:
        self._sent_at = time.monotonic()
        while True:
            silent = time.monotonic() - self._sent_at
            if silent >= self._keep_alive:
                await self._send(send, COMMENT)
            await asyncio.sleep(self._keep_alive - min(silent, self._keep_alive / 2))

    async def _pieces(self) -> AsyncGenerator[bytes]:
        try:
            async with contextlib.aclosing(self._events) as events:
                async for event in events:
                    yield event.encoded()
        except Exception as error:
            shown = api_error(error)
            if shown.status == 500:
                log.exception("a stream failed")
            yield Event(shown.body, None if self._done else "error").encoded()
            return
        if self._done:
            yield DONE
