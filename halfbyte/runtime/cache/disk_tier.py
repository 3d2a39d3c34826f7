"""`DiskTier`: between the pages in memory and the disk cache."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...errors import ResourceError
from .disk_cache import DiskCache
from .pages import PagePool
from .prefix_tree import Key, Place, page_key

log = logging.getLogger("halfbyte.cache")

MovePage = Callable[[int, NDArray[np.uint8]], None]


class DiskTier:
    """Saves pages of texts that have ended, and brings back what a prompt begins with. Used by one thread.

    Pages are saved when there is nothing else to do, when they are evicted, and at the end.
    """

    def __init__(self, disk: DiskCache, pool: PagePool, *, read: MovePage, write: MovePage, page_bytes: int) -> None:
        self._disk = disk
        self._pool = pool
        self._read_page, self._write_page = read, write
        self._page = np.empty(page_bytes, np.uint8)
        self._unsaved: OrderedDict[Key, tuple[int, int]] = OrderedDict()

    @property
    def busy(self) -> bool:
        """Whether pages wait to be saved."""
        return bool(self._unsaved)

    def note(self, place: Place) -> None:
        """A text has ended at `place`: its pages shall be saved."""
        run, depth = self._pool.tree.settle(place)
        found: list[tuple[Key, int, int]] = []
        while run.parent is not None:
            for at in range(min(depth, run.end) - 1, run.start - 1, -1):
                found.append((run.keys[at - run.start], run.pages[at - run.start], at))
            run = run.parent
        for key, page, rank in reversed(found):
            if key not in self._unsaved and not self._disk.has(key):
                self._unsaved[key] = page, rank

    def save_one(self) -> None:
        """Hand the page that waits longest to the disk cache."""
        key, (page, rank) = self._unsaved.popitem(last=False)
        self._save(key, page, rank)

    def save_evicted(self) -> None:
        """Save what is about to be overwritten; to be called before any page is written to."""
        for page, key in self._pool.forget_evicted():
            waiting = self._unsaved.pop(key, None)
            if waiting is not None:
                self._save(key, page, waiting[1])

    def restore(self, labels: list[bytes], seed: bytes) -> None:
        """Bring the pages of a prompt back that are on disk and not in memory."""
        pool = self._pool
        pages, place = pool.tree.match(labels, seed)
        pool.share(pages)
        key = place.run.key_at(place.depth)
        for label in labels[len(pages) :]:
            key = page_key(key, label)
            if not (pool.available and self._disk.has(key)):
                break
            page = pool.take()
            self.save_evicted()
            if not self._disk.get(key, self._page, rank=len(pages)):
                pool.release([page])
                break
            if not self._moved(self._write_page, page):
                pool.release([page])
                break
            place, page = pool.remember(place, label, page)
            pages.append(page)
        pool.tree.touch(place)
        pool.release(pages)

    def close(self) -> None:
        """Save what waits, at the disk's pace."""
        while self._unsaved:
            key, (page, rank) = self._unsaved.popitem(last=False)
            self._save(key, page, rank, wait=True)
        self._disk.close()

    def _save(self, key: Key, page: int, rank: int, *, wait: bool = False) -> None:
        if self._moved(self._read_page, page):
            self._disk.put(key, self._page, rank=rank, wait=wait)

    def _moved(self, move: MovePage, page: int) -> bool:
        """False where the page is out of reach, on a GPU that was lost: a cache may always know less."""
        try:
            move(page, self._page)
        except ResourceError as error:
            log.debug("a page was not moved: %s", error)
            return False
        return True
