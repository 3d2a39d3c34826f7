"""Progress of a download that another program makes: the growth of its folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .entry import Progress

PERIOD_S = 0.2


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below `folder`; files that vanish meanwhile do not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total


@contextmanager
def watched(folder: Path, total: int, progress: Progress) -> Iterator[None]:
    """Call `progress("download", ...)` from a second thread while the block runs, and once when it has ended well."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PERIOD_S):
            done = folder_bytes(folder)
            progress("download", min(done, total) if total else done, total)

    watcher = threading.Thread(target=watch, name="halfbyte-download", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    done = folder_bytes(folder)
    progress("download", total or done, total or done)
