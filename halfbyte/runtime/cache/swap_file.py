"""`SwapFile`: where pages of sequences lie that had to make room."""

from __future__ import annotations

import errno
import tempfile
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, ResourceError
from .filling import fill


class SwapFile:
    """Numbered places of `page_bytes` in a file without a name. Used by one thread.

    The file is gone when the process is, however that ends. It grows as places are written; it is written and read
    rather than mapped, because a full disk under a mapping kills the process. `directory` None takes the system's
    folder for temporary files. Raises `ConfigError` where that takes no files.
    """

    def __init__(self, page_bytes: int, directory: str | PathLike[str] | None = None) -> None:
        self.page_bytes = page_bytes
        try:
            self._file = tempfile.TemporaryFile(buffering=0, dir=directory)  # noqa: SIM115  (lives as long as we do)
        except OSError as error:
            where = directory or tempfile.gettempdir()
            raise ConfigError(
                f"{where}: takes no swap file: {error.strerror}; name another folder", key="swap_space"
            ) from error

    def write(self, place: int, data: NDArray[np.uint8]) -> None:
        """Keep a page. Raises `ResourceError` where the disk takes no more."""
        assert data.nbytes == self.page_bytes
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

    def read(self, place: int, out: NDArray[np.uint8]) -> None:
        """Copy a page that was written. Raises `ResourceError` where the disk does not give it back."""
        assert out.nbytes == self.page_bytes
        try:
            if fill(self._file, place * self.page_bytes, out) < len(out):
                raise OSError(errno.EIO, "the file has become shorter")
        except OSError as error:
            raise ResourceError(f"the swap file cannot be read: {error.strerror}; check the disk") from error

    def close(self) -> None:
        """Give the disk space back; may be called twice."""
        self._file.close()
