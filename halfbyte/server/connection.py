"""`Connection`: HTTP as uvicorn speaks it, with the limits of time that it leaves to others."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from .config import ServerConfig
from .errors import invalid
from .json_text import encode


class Connection(H11Protocol):
    """A head arrives in time, a client takes what it asked for, and there are so many connections at most.

    What is cut off ends the request behind it, as any client does that goes away.
    """

    limits: ServerConfig
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Cut off at once what is too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self.transport.abort()
        else:
            self._arm(self.limits.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Watch over the time between the first byte of a head and its last."""
        super().data_received(data)
        if self._in_request:
            self._disarm()
        elif self._timer is None and self.timeout_keep_alive_task is None:
            self._arm(self.limits.head_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._disarm()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client has taken nothing for a while."""
        super().pause_writing()
        self._arm(self.limits.stall_timeout)

    def resume_writing(self) -> None:
        """It goes on."""
        self._disarm()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """A client that never takes the end of its answer does not stay for ever either."""
        super().on_response_complete()
        self._close_in_time()

    def send_400_response(self, msg: str) -> None:
        """Say in OpenAI's form that this is no HTTP, unless an answer is on its way."""
        if not self._in_request:
            body = encode(invalid(msg, code="invalid_http").body)
            head = "HTTP/1.1 400 Bad Request", "content-type: application/json", f"content-length: {len(body)}"
            self.transport.write("\r\n".join([*head, "connection: close\r\n\r\n"]).encode() + body)
        self.transport.close()
        self._close_in_time()

    def _close_in_time(self) -> None:
        if self.transport.get_write_buffer_size():
            self._arm(self.limits.stall_timeout)

    @property
    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def connection_class(config: ServerConfig) -> type[Connection]:
    """The protocol for uvicorn, which makes one of each connection itself."""
    return type("LimitedConnection", (Connection,), {"limits": config})
