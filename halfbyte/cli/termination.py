"""`unwinding`: work that is told to end cleans up first."""

from __future__ import annotations

import contextlib
import signal
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
    ours = [each for each, handler in before.items() if handler is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, before[each])
