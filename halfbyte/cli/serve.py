"""`halfbyte serve`: a model behind OpenAI's HTTP interface, and a page to talk with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Unpack

from ..errors import ConfigError
from . import terminal
from .command import Command, Option
from .loading import rows
from .model import load, locate
from .options import GPU, LOADING, MODEL, on_gpu
from .progress import Bar
from .server_settings import server_setting, setting_rows
from .text_file import read_text

if TYPE_CHECKING:
    from ..runtime.embedder import Embedder
    from ..runtime.gpu_layers import GpuOptions
    from ..server.running import RunningServer
    from ..server.served import Served

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
KEY_VARIABLE = "HALFBYTE_API_KEY"

HOST = Option(
    "--host", str, "Address to listen at; 0.0.0.0 is all of this computer's", "address", otherwise="127.0.0.1"
)
PORT = Option("--port", int, "Port to listen at; 0 takes a free one", "number", 0, 65535, default=8080, short="-p")
NAME = Option("--name", str, "What clients call the model", "text", otherwise="the file's name")
EMBEDDER = Option(
    "--embeddings", str, "Serve the vectors of this embedding model too", "path or name", otherwise="none"
)
KEYS = Option(
    "--api-keys",
    str,
    f"Ask for one of the keys in this file; {KEY_VARIABLE} in the environment is one too",
    "path of a text, one key a line",
    otherwise="no key",
)
CORS = Option(
    "--cors",
    str,
    "Let web pages of this origin call from a browser, * for all; may be given several times",
    "origin like https://example.org",
    otherwise="none",
    many=True,
)
PARALLEL = Option("--parallel", int, "Answers computed together", "answers", low=1, high=512, default=16)
QUEUE = Option("--queue", int, "Requests that may wait; more are refused with 429", "requests", low=1, default=128)
SET = Option("--set", str, "Any of the settings below; may be given several times", "NAME=VALUE", many=True)


def run(values: Namespace) -> int:
    """Serve until told to stop; then let requests under way end."""
    from ..server.address import listen
    from ..server.config import ServerConfig
    from ..server.running import RunningServer

    keys = _keys(values.api_keys)
    settings = dict(map(server_setting, values.set or []))
    config = ServerConfig(keys=keys, origins=tuple(values.cors or ()), **settings)
    with ExitStack() as stack:
        # Before the model is loaded, which takes its time: a port that is taken should be known at once.
        socket = stack.enter_context(listen(values.host or "127.0.0.1", values.port))
        served = _served(values, stack)
        server = RunningServer(served, config, at=socket)
        with _log_lines(), _draining(server):
            asyncio.run(server.serve(lambda: _announce(server, served, bool(keys))))
    terminal.note("stopped")
    return 0


def _served(values: Namespace, stack: ExitStack) -> Served:
    from ..runtime.purpose import embeds
    from ..server.served import Served

    name = values.name or Path(values.model).stem
    if embeds(locate(values.model)):
        if values.embeddings is not None:
            raise ConfigError(f"{values.model} makes vectors itself: give a model that writes beside --embeddings")
        embedder = stack.enter_context(_embedder(values, values.model, **on_gpu(values)))
        return Served(embedder=embedder, embedder_name=name)
    llm = stack.enter_context(load(values, max_num_seqs=values.parallel, max_queued=values.queue))
    if values.embeddings is None:
        return Served(llm, name)
    embedder = stack.enter_context(_embedder(values, values.embeddings))
    return Served(llm, name, embedder, Path(values.embeddings).stem)


def _embedder(values: Namespace, model: str, **gpu: Unpack[GpuOptions]) -> Embedder:
    import halfbyte

    with Bar() as bar:
        return halfbyte.load_embedder(model, threads=values.threads, progress=bar, **gpu)


def _keys(path: str | None) -> tuple[str, ...]:
    lines = [] if path is None else read_text(path).splitlines()
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if path is not None and not keys:
        raise ConfigError(f"{path}: there is no key in it, and none asked for would be a server open to all")
    from_environment = os.environ.get(KEY_VARIABLE, "").strip()
    return tuple(keys + [from_environment] * bool(from_environment))


def _announce(server: RunningServer, served: Served, has_keys: bool) -> None:
    from ..server.address import is_local

    terminal.note(f"serving {', '.join(served.names())} at {server.url} (API at {server.url}/v1, Ctrl-C stops)")
    if not is_local(server.host) and not has_keys:
        terminal.note(f"warning: whoever reaches {server.host} may use this model: --api-keys asks for a key")


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        terminal.note(self.format(record))


@contextlib.contextmanager
def _log_lines() -> Iterator[None]:
    """A line on stderr for each request, and what uvicorn warns of."""
    lines = _Lines()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    levels = {logging.getLogger("halfbyte.server"): logging.INFO, logging.getLogger("uvicorn.error"): logging.WARNING}
    for log, level in levels.items():
        log.addHandler(lines)
        log.setLevel(level)
        log.propagate = False
    try:
        yield
    finally:
        for log in levels:
            log.removeHandler(lines)
            log.setLevel(logging.NOTSET)
            log.propagate = True


@contextlib.contextmanager
def _draining(server: RunningServer) -> Iterator[None]:
    """The first signal to stop lets requests end, the second one does not."""
    told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if told:
            raise KeyboardInterrupt
        told = True
        server.drain()

    ours = threading.current_thread() is threading.main_thread()
    signals = [getattr(signal, name) for name in SIGNALS if ours and hasattr(signal, name)]
    # Who started us with a signal ignored, as nohup does, wants it ignored.
    taken = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, stop) for each in taken}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


COMMAND = Command(
    "serve",
    about="Serve a model over HTTP as OpenAI's API does, with a page to talk with it. Programs made for OpenAI work "
    "with base_url=http://127.0.0.1:8080/v1. SIGTERM and Ctrl-C let requests under way end first.",
    example="halfbyte serve smollm2-135m",
    run=run,
    arguments=(replace(MODEL, default="smollm2-135m"),),
    options=(HOST, PORT, NAME, EMBEDDER, KEYS, CORS, PARALLEL, QUEUE, SET, *LOADING),
    gpu=GPU,
    settings=setting_rows,
    loading=rows,
)
