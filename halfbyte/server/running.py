"""`RunningServer`: an application on a socket, from its start to its drained end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address

import uvicorn
from starlette.applications import Starlette

from ..errors import ResourceError
from .app import build_app
from .call import Server
from .config import ServerConfig
from .connection import connection_class
from .served import Served

log = logging.getLogger("halfbyte.server")


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the host's."""
        yield


class RunningServer:
    """Serves models at a socket that is bound when this is made, so that the address is known before.

    `serve` runs until `drain` was called and requests have ended. Closing the models is the caller's.
    Raises `ResourceError` for an address that cannot be had.
    """

    def __init__(
        self, served: Served, config: ServerConfig | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._config = config or ServerConfig()
        self._socket = _bind(host, port)
        self.host, self.port = self._socket.getsockname()[:2]
        self.app: Starlette = build_app(served, self._config)
        self._served = served
        self._uvicorn = _Uvicorn(self._settings())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this computer reaches it."""
        return ip_address(self.host.partition("%")[0]).is_loopback

    async def serve(self, started: Callable[[], None] = lambda: None) -> None:
        """Serve until drained; `started` is called when requests are taken."""
        self._loop = asyncio.get_running_loop()
        server: Server = self.app.state.server
        listening = asyncio.ensure_future(self._uvicorn.serve(sockets=[self._socket]))
        try:
            while not self._uvicorn.started and not listening.done():
                await asyncio.sleep(0.005)
            started()
            await self._begin.wait()
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
            timeout_graceful_shutdown=2,
        )


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise ResourceError(
            f"cannot listen at {host}:{port}: {error.strerror or error}; take another --port or --host"
        ) from None
    return bound
