"""`ResidentPeak`: the most memory of our own that the process held meanwhile."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

PERIOD_S = 0.01


def own_bytes() -> int:
    """Resident bytes of this process without pages of mapped files where the system tells them apart; else the peak."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            rows = dict(line.split(":", 1) for line in status)
        return sum(int(rows[name].split()[0]) for name in ("RssAnon", "RssShmem")) * 1024
    except (OSError, KeyError, ValueError):
        return _peak_bytes()


def _peak_bytes() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class ResidentPeak:
    """Samples while its block runs; `bytes` afterwards, 0 where the system does not tell."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="halfbyte-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.bytes = max(self.bytes, own_bytes())
            if self._ended.wait(PERIOD_S):
                return
