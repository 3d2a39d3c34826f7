"""`Tracing`: the `with` block that writes a trace file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..._version import __version__
from ...errors import ConfigError, RequestError
from ...formats.named_path import named_path
from ...formats.new_file import NewFile, check_place
from .chrome_trace import events, text
from .recording import Recording

if TYPE_CHECKING:
    from ..engine import Engine
    from ..loop import EngineLoop

_PIECES = 4096


class Tracing:
    """Records while it is open; leaving it writes the file, after an exception in the block too.

    Raises `ConfigError` where the file cannot be written or something is recorded already, `ResourceError` where the
    disk is full.
    """

    def __init__(self, engine: Engine, path: str | PathLike[str]) -> None:
        self._engine = engine
        self._path = named_path(path)
        self._recording: Recording | None = None

    def __enter__(self) -> Self:
        check_place(self._path)
        self._recording = self._engine.call(_start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recording, self._recording = self._recording, None
        assert recording is not None
        with suppress(RequestError):  # the model was closed in the block; what was recorded until then is there
            self._engine.call(_stop)
        about = {"program": f"halfbyte {__version__}", **self._engine.facts, "stopped_early": recording.full}
        _write(self._path, text(events(recording.phases, recording.ops, recording.counts), about))


def _start(loop: EngineLoop) -> Recording:
    if loop.meter.recording is not None:
        raise ConfigError("a trace of this model is being recorded already: leave its `with` block first", key="path")
    loop.meter.recording = recording = Recording(loop.executable)
    recording.start()
    return recording


def _stop(loop: EngineLoop) -> None:
    assert loop.meter.recording is not None
    loop.meter.recording.stop()
    loop.meter.recording = None


def _write(path: Path, pieces: Iterator[str]) -> None:
    file = NewFile(path, 0)
    try:
        while data := "".join(islice(pieces, _PIECES)).encode():
            file.write(file.size, data)
            file.size += len(data)
        file.commit()
    except BaseException:
        file.discard()
        raise
