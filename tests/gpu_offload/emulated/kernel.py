"""A compiled kernel, callable."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import numpy as np

from halfbyte.gpu_offload.device import Launch

from .compiler import libraries, library

# A library holds the state of one block.
ONE_AT_A_TIME = threading.Lock()


class Kernel:
    def __init__(self, loaded: ctypes.CDLL, index: int) -> None:
        self.name = loaded.kernel_name(index).decode()
        self.kinds = loaded.kernel_kinds(index).decode()
        self._loaded = loaded
        self._index = index

    def words(self, arguments: tuple[int | float, ...]) -> np.ndarray:
        """Arguments as the machine takes them. A whole number where a float stands would be read as something else."""
        given = "".join("f" if isinstance(a, float) else "i" for a in arguments)
        assert given == self.kinds, (
            f"{self.name}: arguments are {given!r}, parameters {self.kinds!r} (i whole, f float)"
        )
        words = np.zeros(max(len(arguments), 1), np.uint64)
        for i, argument in enumerate(arguments):
            bits = np.float32(argument).view(np.uint32) if given[i] == "f" else np.int64(argument).view(np.uint64)
            words[i] = bits
        return words

    def run(self, launch: Launch, words: np.ndarray, order: int, watched: np.ndarray) -> None:
        error = ctypes.create_string_buffer(1024)
        grid = np.array(launch.grid, np.uint32)
        with ONE_AT_A_TIME:
            self._loaded.run_kernel(
                *(self._index, grid.ctypes.data, launch.threads, launch.shared, words.ctypes.data, order),
                *(watched.ctypes.data, len(watched), error, 1024),
            )
        assert not error.value, f"{self.name}, {error.value.decode()}"


def load(names: list[str], more: tuple[Path, ...] = ()) -> tuple[dict[str, Kernel], int]:
    """Kernels by name, and how many were compiled."""
    paths, compiled = libraries(names, more)
    kernels = {}
    for path in paths:
        loaded = library(path)
        for i in range(loaded.kernel_count()):
            kernel = Kernel(loaded, i)
            kernels[kernel.name] = kernel
    return {name: kernels[name] for name in names}, compiled
