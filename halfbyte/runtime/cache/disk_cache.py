"""`DiskCache`: pages that outlive the process, shared by all processes that name the same folder."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, HalfbyteError, ResourceError
from .disk_quota import DiskQuota
from .page_folder import PageFolder
from .page_writer import PageWriter

log = logging.getLogger("halfbyte.cache")

QUEUE_BYTES = 64 << 20


class DiskCache:
    """Pages of `page_bytes` by key in `directory`, which is made if need be and holds about `max_bytes` at most.

    Keys name a page's tokens, all before them and the model (`page_key` from the fingerprint on), so any number of
    models may share the folder. Pages are as private as what was said: the folder is made for its owner alone, and so
    are the files. Once it is open nothing that happens to the disk raises: a page that cannot be read is absent, one
    that cannot be written is let go, and the first trouble is logged as a warning.

    `rank` is a page's number in its text; the ends of texts are evicted before their beginnings.
    Raises `ConfigError` where the folder cannot be made or written to or the size is less than a page, `ResourceError`
    where the disk is full.
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        max_bytes: int,
        fingerprint: bytes,
        page_bytes: int,
        *,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self.directory = os.path.abspath(directory)
        self._folder = PageFolder(self.directory, fingerprint, page_bytes)
        if max_bytes < self._folder.entry_bytes:
            raise ConfigError(
                f"disk_cache_size: {max_bytes} bytes hold no page, which has {self._folder.entry_bytes}; allow more",
                key="disk_cache_size",
            )
        _prepare(self.directory)
        self._quota = DiskQuota(self._folder, max_bytes)
        self._writer = PageWriter(self._write, page_bytes, max(queue_bytes // page_bytes, 1))
        self._hits = self._misses = self._damaged = self._written = self._failed = 0
        self._warned = False

    def has(self, key: bytes) -> bool:
        """Whether `get` will probably find the page."""
        return self._writer.has(key) or self._folder.has(key)

    def get(self, key: bytes, out: NDArray[np.uint8], *, rank: int = 0) -> bool:
        """Fill `out` u8[page_bytes] with the page as it was put; False, and `out` undefined, where there is none."""
        try:
            found = self._writer.read(key, out) or self._folder.read(key, out, rank)
        except OSError as error:
            self._warn("read", error)
            found = None
        if found is False:
            self._damaged += 1
            log.info("a damaged page was removed from %s", self.directory)
        self._hits += bool(found)
        self._misses += not found
        return bool(found)

    def put(self, key: bytes, page: NDArray[np.uint8], *, rank: int = 0, wait: bool = False) -> bool:
        """Copy a page to be written in the background.

        False where the disk cannot follow and it was dropped; with `wait` it takes its time instead.
        """
        return self._writer.put(key, page, rank, wait=wait)

    def counts(self) -> dict[str, int]:
        """What happened since it was opened, in pages: hits, misses, damaged, written, dropped, failed, evicted."""
        return {
            "hits": self._hits,
            "misses": self._misses,
            "damaged": self._damaged,
            "written": self._written,
            "dropped": self._writer.dropped,
            "failed": self._failed,
            "evicted": self._quota.evicted,
        }

    def flush(self) -> None:
        """Wait until all pages that were put are files."""
        self._writer.flush()

    def close(self) -> None:
        """Write what waits; may be called twice. What is put later is dropped."""
        self._writer.close()

    def _write(self, key: bytes, page: NDArray[np.uint8], rank: int) -> None:
        try:
            n_bytes = self._folder.write(key, page, rank)
            self._written += n_bytes > 0
            self._quota.add(n_bytes)
        except Exception as error:  # whatever it is, it must not end the thread that others wait for
            self._failed += 1
            self._warn("written", error)

    def _warn(self, what: str, error: Exception) -> None:
        level = logging.DEBUG if self._warned else logging.WARNING
        self._warned = True
        log.log(level, "the disk cache %s cannot be %s (%s); going on without it", self.directory, what, error)


def _prepare(directory: str) -> None:
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        handle, probe = tempfile.mkstemp(dir=directory)
        os.close(handle)
        os.unlink(probe)
    except (OSError, ValueError) as error:
        raise _unusable(directory, error) from error


def _unusable(directory: str, error: OSError | ValueError) -> HalfbyteError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResourceError(f"{directory}: the disk is full; make room or name another folder as disk_cache")
    why = getattr(error, "strerror", None) or error
    return ConfigError(f"{directory}: cannot be a disk cache: {why}; name another folder", key="disk_cache")
