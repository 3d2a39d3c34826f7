"""`DiskQuota`: keeps a shared folder of pages from growing over its size."""

from __future__ import annotations

import contextlib
import os

from .page_folder import PageFolder

LOOKS = 32
"""A process looks what is there after writing this part of the quota, and may exceed it by as much."""
KEPT = 7 / 8
"""What is left when pages must go, so that the next page does not make the next one go at once."""


class DiskQuota:
    """At most about `max_bytes` of pages of all models and processes. Used by one thread.

    What other processes write and remove is known from looking at the whole folder only, which is dear; in between a
    process counts what it writes itself. Processes that evict at the same time agree about which pages are oldest.
    """

    def __init__(self, folder: PageFolder, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.evicted = 0
        self._folder = folder
        self._total = 0
        self._unseen = max_bytes  # so that the first page makes us look

    def add(self, n_bytes: int) -> None:
        """Count what was written, and evict the pages unused for longest where it was too much."""
        self._total += n_bytes
        self._unseen += n_bytes
        if n_bytes and (self._total > self.max_bytes or self._unseen * LOOKS > self.max_bytes):
            self._look()

    def _look(self) -> None:
        pages = sorted(self._folder.pages())
        self._unseen = 0
        self._total = sum(page.n_bytes for page in pages)
        if self._total <= self.max_bytes:
            return
        for page in pages:
            if self._total <= self.max_bytes * KEPT:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(page.path)
                self.evicted += 1
            self._total -= page.n_bytes
