"""`PageWriter`: writes pages in the background, or lets them go where it cannot follow."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

IDLE_S = 2.0

WritePage = Callable[[bytes, NDArray[np.uint8], int], None]
"""`write(key, page, rank)` raises nothing."""


class PageWriter:
    """At most `capacity` pages of `page_bytes` that wait to be written. Any thread may use it.

    The thread that writes starts with the first page and ends when none came for a while, so that it keeps neither the
    process nor this object alive. In a forked process, where it does not exist, nothing is taken or waited for.
    """

    def __init__(self, write: WritePage, page_bytes: int, capacity: int) -> None:
        self.capacity = capacity
        self.dropped = 0
        self._write = write
        self._page_bytes = page_bytes
        self._changed = threading.Condition()
        self._waiting: dict[bytes, tuple[NDArray[np.uint8], int]] = {}
        self._spare: list[NDArray[np.uint8]] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._pid = os.getpid()

    def put(self, key: bytes, page: NDArray[np.uint8], rank: int, *, wait: bool) -> bool:
        """Copy a page to be written; False where it was dropped because there was no room and nobody would `wait`."""
        if self._forked():
            return False
        with self._changed:
            while wait and len(self._waiting) >= self.capacity and not self._closed:
                self._changed.wait()
            if key in self._waiting:
                return True
            if self._closed or len(self._waiting) >= self.capacity or not self._started():
                self.dropped += 1
                return False
            copy = self._spare.pop() if self._spare else np.empty(self._page_bytes, np.uint8)
            copy[:] = page
            self._waiting[key] = (copy, rank)
            self._changed.notify_all()
        return True

    def has(self, key: bytes) -> bool:
        """Whether the page waits to be written."""
        return not self._forked() and key in self._waiting

    def read(self, key: bytes, out: NDArray[np.uint8]) -> bool:
        """Fill `out` with a page that waits to be written; False where none does."""
        if self._forked():
            return False
        with self._changed:
            found = self._waiting.get(key)
            if found is None:
                return False
            out[:] = found[0]
        return True

    def flush(self) -> None:
        """Wait until all pages that were put are written."""
        if self._forked():
            return
        with self._changed:
            while self._waiting:
                self._changed.wait()

    def close(self) -> None:
        """Write what waits, then end; may be called twice."""
        self.flush()
        if self._forked():
            return
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _forked(self) -> bool:
        """Asked before the lock is taken, which the parent may have held."""
        return os.getpid() != self._pid

    def _started(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="halfbyte-disk-cache", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread left to have, or the interpreter is shutting down
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting or self._closed, IDLE_S) or not self._waiting:
                    self._thread = None
                    self._spare.clear()
                    return
                # It can be read until it is written, so it stays where it is.
                key, (page, rank) = next(iter(self._waiting.items()))
            self._write(key, page, rank)
            with self._changed:
                del self._waiting[key]
                self._spare.append(page)
                self._changed.notify_all()
