"""`unwinding`: work that is told to end cleans up first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """A terminal that closes or a `kill` ends the work as Ctrl-C does, instead of where it stands."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Who started us with a signal ignored, as nohup does, wants it ignored.
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    # Only the main thread may ask for signals; who runs a command elsewhere keeps them.
    allowed = threading.current_thread() is threading.main_thread()
    ours = [each for each, handler in before.items() if allowed and handler is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, before[each])
