"""Reading a file until a buffer is full: the system may give less than was asked for."""

from __future__ import annotations

from io import FileIO

import numpy as np
from numpy.typing import NDArray


def fill(file: FileIO, at: int, out: NDArray[np.uint8]) -> int:
    """Read from byte `at` into `out`; how many bytes there were, fewer than asked for only at the end of the file."""
    file.seek(at)
    view, done = out.data.cast("B"), 0
    while done < len(view) and (n_bytes := file.readinto(view[done:])):
        done += n_bytes
    return done
