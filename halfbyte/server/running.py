"""`RunningServer`: an application on a socket, from its start to its drained end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import uvicorn
from starlette.applications import Starlette

from .address import is_local, listen
from .app import build_app
from .call import Server
from .config import ServerConfig
from .connection import connection_class
from .served import Served

IDLE_S = 30
"""Longer than most clients keep a connection they do not use: else a server's end crosses with their next request."""
CLOSING_S = 2
"""For last bytes to leave when all requests have been answered."""

log = logging.getLogger("halfbyte.server")


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the host's."""
        yield


class RunningServer:
    """Serves models at a bound socket, by default a free port of the loopback; `host` and `port` say where.

    `serve` runs until `drain` was called and requests have ended. Closing the models is the caller's.
    """

    def __init__(self, served: Served, config: ServerConfig | None = None, *, at: socket.socket | None = None) -> None:
        self._socket = listen() if at is None else at
        self.host, self.port = self._socket.getsockname()[:2]
        config = config or ServerConfig()
        if not is_local(self.host) and not config.hosts:
            config = replace(config, hosts=("*",))  # others call it by names that nobody can know here
        self._config = config
        self.app: Starlette = build_app(served, config)
        self._served = served
        self._uvicorn = _Uvicorn(self._settings())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def serve(self, started: Callable[[], None] = lambda: None) -> None:
        """Serve until drained; `started` is called when requests are taken."""
        self._loop = asyncio.get_running_loop()
        server: Server = self.app.state.server
        listening = asyncio.ensure_future(self._uvicorn.serve(sockets=[self._socket]))
        try:
            while not self._uvicorn.started and not listening.done():
                await asyncio.sleep(0.005)
            started()
            begin = asyncio.ensure_future(self._begin.wait())
            await asyncio.wait({begin, listening}, return_when=asyncio.FIRST_COMPLETED)
            begin.cancel()
            server.drain.begin()
            if not await server.drain.idle(self._config.drain_timeout):
                await self._break_off(server)
        finally:
            self._uvicorn.should_exit = True
            await listening

    def drain(self) -> None:
        """Take no more requests and end when those under way have; any thread may call it, and a signal handler."""
        if self._loop is None:
            self._begin.set()
        else:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._begin.set)

    async def _break_off(self, server: Server) -> None:
        log.warning("%d requests did not end in time and are broken off", server.drain.running)
        if self._served.llm is not None:
            await asyncio.to_thread(self._served.llm.close)
        await server.drain.idle(1.0)

    def _settings(self) -> uvicorn.Config:
        config = self._config
        return uvicorn.Config(
            self.app,
            http=connection_class(config),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=CLOSING_S,
        )
