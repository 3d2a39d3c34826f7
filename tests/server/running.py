"""A server on a loopback port, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from halfbyte.server.config import ServerConfig
from halfbyte.server.running import RunningServer
from halfbyte.server.served import Served


@contextmanager
def running(served: Served, at=None, **config) -> Iterator[RunningServer]:
    """Serve until the block ends, then drain; the caller closes the models."""
    server = RunningServer(served, ServerConfig(**config), at=at)
    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(started.set)))
    thread.start()
    try:
        assert started.wait(10)
        yield server
    finally:
        server.drain()
        thread.join(30)
        assert not thread.is_alive()
