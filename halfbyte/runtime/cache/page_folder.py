"""`PageFolder`: pages as files in a folder that several processes and models share.

A page is one file, in one of 256 folders by the first byte of its key. Files of many pages were measured: reading 94
pages of 369 KB takes 15 ms either way when they are in the system's cache (9 ms of it are checksums), and 45 instead of
30 ms when they are not, which does not pay for pages that cannot be evicted one by one.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .page_file import HEADER_BYTES, TEMPORARY, read_page, write_page

STALE_S = 600.0
"""A temporary file as old as this belongs to a process that died: writing one takes milliseconds."""
RANK_NS = 10_000_000
_SHARD = re.compile(r"[0-9a-f]{2}")
_PAGE = re.compile(r"[0-9a-f]{32}\.page")


class StoredPage(NamedTuple):
    """When a page was used (nanoseconds), its size in bytes, and where it is."""

    used: int
    n_bytes: int
    path: str


class PageFolder:
    """Files of pages of one model, and what other models keep beside them. Has no state, so threads may share it.

    `rank` is a page's number in its text. It makes a page look as if it had been used a little before those that stand
    in front of it, without which it is of no use, so that the ends of texts are evicted before their beginnings.
    """

    def __init__(self, directory: str, fingerprint: bytes, page_bytes: int) -> None:
        self.directory = directory
        self.entry_bytes = HEADER_BYTES + page_bytes
        self._fingerprint = fingerprint

    def has(self, key: bytes) -> bool:
        """Whether there is a file for the page; only `read` tells whether it is sound."""
        return os.path.exists(self._path(key))

    def read(self, key: bytes, out: NDArray[np.uint8], rank: int) -> bool | None:
        """Fill `out` and note that the page was used; None where it is absent, False where it was damaged.

        A damaged one is removed. Raises `OSError` where the folder cannot be read.
        """
        path = self._path(key)
        try:
            sound = read_page(path, self._fingerprint, key, out)
        except FileNotFoundError:
            return None
        with contextlib.suppress(OSError):  # the folder may have become read-only, or another process was faster
            if sound:
                _touch(path, rank)
            else:
                os.unlink(path)
        return sound

    def write(self, key: bytes, page: NDArray[np.uint8], rank: int) -> int:
        """Keep a page; the bytes that it adds, 0 where it was there already. Raises `OSError`."""
        path = self._path(key)
        try:
            known = os.stat(path).st_size == self.entry_bytes
        except FileNotFoundError:
            known = False
        if not known:
            try:
                write_page(path, self._fingerprint, key, page)
            except FileNotFoundError:
                # Not with its parents: a cache that was removed stays so.
                with contextlib.suppress(FileExistsError):
                    os.mkdir(os.path.dirname(path), 0o700)
                write_page(path, self._fingerprint, key, page)
        with contextlib.suppress(OSError):
            _touch(path, rank)
        return 0 if known else self.entry_bytes

    def pages(self) -> Iterator[StoredPage]:
        """All pages of all models; removes what dead processes left half written."""
        for shard in _listing(self.directory):
            if _SHARD.fullmatch(shard.name):
                for entry in _listing(shard.path):
                    with contextlib.suppress(FileNotFoundError):
                        yield from _look_at(entry)

    def _path(self, key: bytes) -> str:
        name = key.hex()
        return f"{self.directory}{os.sep}{name[:2]}{os.sep}{name}.page"


def _listing(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _look_at(entry: os.DirEntry[str]) -> Iterator[StoredPage]:
    if _PAGE.fullmatch(entry.name):
        found = entry.stat(follow_symlinks=False)
        yield StoredPage(found.st_mtime_ns, found.st_size, entry.path)
    elif entry.name.endswith(TEMPORARY) and abs(time.time() - entry.stat(follow_symlinks=False).st_mtime) > STALE_S:
        os.unlink(entry.path)


def _touch(path: str, rank: int) -> None:
    now = time.time_ns()
    os.utime(path, ns=(now, now - rank * RANK_NS))
