"""`SwapSpace`: a file for the pages of sequences that had to make room."""

from __future__ import annotations

import errno
import tempfile
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, ResourceError


class SwapSpace:
    """Numbered places of `page_bytes` in a file without a name, at most `max_bytes` of them. Used by one thread.

    The file is gone when the process is, however that ends. It grows as places are needed; it is written and read
    rather than mapped, because a full disk under a mapping kills the process. `directory` None takes the system's
    folder for temporary files. Raises `ConfigError` where that takes no files.
    """

    def __init__(self, max_bytes: int, page_bytes: int, directory: str | PathLike[str] | None = None) -> None:
        self.page_bytes = page_bytes
        self.n_places = max_bytes // page_bytes
        self._begun = 0  # places below were used at some time
        self._free: list[int] = []
        self._used: set[int] = set()
        try:
            self._file = tempfile.TemporaryFile(buffering=0, dir=directory)  # noqa: SIM115  (lives as long as we do)
        except OSError as error:
            where = directory or tempfile.gettempdir()
            raise ConfigError(
                f"{where}: takes no swap file: {error.strerror}; name another folder", key="swap_space"
            ) from error

    @property
    def available(self) -> int:
        """Places that `put` can fill."""
        return 0 if self._file.closed else self.n_places - len(self._used)

    def put(self, data: NDArray[np.uint8]) -> int:
        """Keep a page; the place it is in. Raises `ResourceError` where the disk takes no more, and keeps nothing."""
        assert self.available > 0, "put() without an available place"
        assert data.nbytes == self.page_bytes
        place = self._free[-1] if self._free else self._begun
        self._write(place, data)
        if self._free:
            self._free.pop()
        else:
            self._begun += 1
        self._used.add(place)
        return place

    def get(self, place: int, out: NDArray[np.uint8]) -> None:
        """Copy a kept page. Raises `ResourceError` where the disk does not give it back."""
        assert place in self._used, f"place {place} holds nothing"
        assert out.nbytes == self.page_bytes
        view = out.data.cast("B")
        try:
            self._file.seek(place * self.page_bytes)
            while len(view):
                n_bytes = self._file.readinto(view)
                if not n_bytes:
                    raise OSError(errno.EIO, "the file has become shorter")
                view = view[n_bytes:]
        except OSError as error:
            raise ResourceError(f"the swap file cannot be read: {error.strerror}; check the disk") from error

    def free(self, place: int) -> None:
        """Let go of a page."""
        assert place in self._used, f"place {place} freed more often than taken"
        self._used.remove(place)
        self._free.append(place)

    def close(self) -> None:
        """Give the disk space back; may be called twice."""
        self._file.close()

    def check_integrity(self) -> None:
        """Raise `AssertionError` unless every place was never used, or is used, or is free."""
        free = set(self._free)
        assert len(free) == len(self._free), "a place is free twice"
        assert not free & self._used, "a place is free and used"
        assert free | self._used == set(range(self._begun)), "a place is lost"
        assert self._begun <= self.n_places, "more places than allowed"

    def _write(self, place: int, data: NDArray[np.uint8]) -> None:
        view = data.data.cast("B")
        try:
            self._file.seek(place * self.page_bytes)
            while len(view):
                view = view[self._file.write(view) :]
        except OSError as error:
            raise ResourceError(
                f"the swap file cannot grow: {error.strerror}; make room on its disk or lower swap_space",
                needed=self.page_bytes,
            ) from error
