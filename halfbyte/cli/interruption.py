"""`noted`: whether Ctrl-C was pressed, whatever became of the exception."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interruption:
    """`happened` tells that Ctrl-C was pressed since."""

    happened: bool = False


@contextlib.contextmanager
def noted() -> Iterator[Interruption]:
    """Ctrl-C raises `KeyboardInterrupt` as ever, which NumPy, while it is imported, turns into an `ImportError`."""
    seen = Interruption()

    def interrupt(number: int, frame: FrameType | None) -> None:
        seen.happened = True
        raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
