"""One stretch of memory, handed out in aligned pieces and never moved."""

from __future__ import annotations

import contextlib
import mmap
import sys

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError

HUGE = 2 << 20
LINE = 64

_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""Shared memory, which is what mmap makes of no file otherwise, rarely gets huge pages."""


class Arena:
    """Zeroed memory of `size` bytes, on huge pages where the system has them and `huge` asks for them.

    Huge pages save address look-ups but come whole: memory that fills up slowly, or never, is better on small ones.
    `take` gives the address of the next piece. The memory lives as long as the arena or a view of it.
    """

    def __init__(self, size: int, what: str, *, huge: bool = True) -> None:
        self.size = size
        try:
            self._map = mmap.mmap(-1, size + HUGE, **_PRIVATE)
        except (OSError, OverflowError, MemoryError) as error:
            raise ResourceError(f"no memory for {what}: {size:,} bytes needed", needed=size) from error
        if huge and hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a system built without them: small pages do
                self._map.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(self._map, np.uint8)
        start = -raw.ctypes.data % HUGE
        self.bytes: NDArray[np.uint8] = raw[start : start + size]
        self._base = self.bytes.ctypes.data
        self._used = 0

    def take(self, n_bytes: int) -> int:
        """Address of `n_bytes` fresh bytes, aligned to a cache line."""
        begin = self._used
        self._used = begin + (n_bytes + LINE - 1) // LINE * LINE
        assert self._used <= self.size, (self._used, self.size)
        return self._base + begin

    def put(self, values: NDArray[np.floating], padding: int) -> int:
        """Address of a copy of `values`, with as many zeros as `padding` says behind it."""
        address = self.take(values.itemsize * (len(values) + padding))
        self.view(address, (len(values),), values.dtype.type)[:] = values
        return address

    def view(self, address: int, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[np.generic]:
        """An array over bytes that `take` gave."""
        begin = address - self._base
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.bytes[begin : begin + n_bytes].view(dtype).reshape(shape)


def rounded(n_bytes: int) -> int:
    """What `take` uses up for `n_bytes`."""
    return (n_bytes + LINE - 1) // LINE * LINE


assert sys.byteorder == "little", "kernels and GGUF alike are written for little-endian machines"
