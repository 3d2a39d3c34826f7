"""`Descriptor`: bytes of a file that may be cut at any moment."""

from __future__ import annotations

import os
from io import FileIO

import numpy as np
from numpy.typing import NDArray


class Descriptor:
    """The file as it was opened, whatever its path names later; open for as long as someone holds it."""

    _fd = -1

    def __init__(self, file: FileIO) -> None:
        self._fd = os.dup(file.fileno())

    def read(self, start: int, stop: int) -> NDArray[np.uint8]:
        """u8[n] from byte `start` to `stop`, fewer where the file ends before: a mapping would kill the process."""
        data = np.empty(stop - start, np.uint8)
        done = 0
        while done < len(data):
            count = os.preadv(self._fd, [data[done:].data], start + done)
            if count == 0:
                break
            done += count
        return data[:done]

    def __del__(self) -> None:
        if self._fd >= 0:  # there was one left to have
            os.close(self._fd)
