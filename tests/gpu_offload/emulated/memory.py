"""Device memory on the host: poisoned when it is made, its end at a page that nobody may touch."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

PAGE = mmap.PAGESIZE
FENCE = (64 << 10) // PAGE * PAGE
INTACT = 0xA5
POISON = 0xFF
NOTHING = 0  # PROT_NONE
WATCHED = np.dtype([("begin", np.uint64), ("bytes", np.uint64), ("written", np.uint32), ("readable", np.uint32)])


class EmulatedBuffer:
    """Memory aligned to 256 bytes. Its pages outlive it until whatever was enqueued has run."""

    address: int
    n_bytes: int

    def __init__(self, address: int, n_bytes: int) -> None:
        self.address = address
        self.n_bytes = n_bytes


@dataclass
class Pages:
    """A buffer of `n_bytes` from `start` on; what is left of its pages is looked at later."""

    inside: np.ndarray
    start: int
    n_bytes: int
    written: bool = False
    """By a kernel, since the host waited."""

    def check(self) -> None:
        for rest, where in (
            (self.inside[: self.start], "before"),
            (self.inside[self.start + self.n_bytes :], "behind"),
        ):
            touched = np.flatnonzero(rest != INTACT)
            assert not touched.size, f"wrote {where} a buffer of {self.n_bytes} bytes"


def _pages(n_bytes: int) -> Pages:
    room = (n_bytes + 255) // 256 * 256
    size = (room + PAGE - 1) // PAGE * PAGE
    everything = np.frombuffer(mmap.mmap(-1, FENCE + size + FENCE), np.uint8)
    libc = ctypes.CDLL(None)
    for begin in (0, FENCE + size):
        done = libc.mprotect(ctypes.c_void_p(everything.ctypes.data + begin), ctypes.c_size_t(FENCE), NOTHING)
        assert done == 0, "mprotect"
    inside = everything[FENCE : FENCE + size]
    inside[:] = INTACT
    start = size - room
    inside[start : start + n_bytes] = POISON
    return Pages(inside, start, n_bytes)


class Memory:
    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used = 0
        self._live: dict[int, Pages] = {}
        self._gone: dict[int, Pages] = {}

    def allocate(self, n_bytes: int) -> EmulatedBuffer:
        pages = _pages(n_bytes)
        buffer = EmulatedBuffer(pages.inside.ctypes.data + pages.start, n_bytes)
        self.used += n_bytes
        self._live[buffer.address] = pages
        weakref.finalize(buffer, self._free, buffer.address)
        return buffer

    def _free(self, address: int) -> None:
        pages = self._live.pop(address)
        self.used -= pages.n_bytes
        self._gone[address] = pages

    def bytes_at(self, address: int, n_bytes: int) -> np.ndarray:
        """Bytes of one buffer, by address."""
        for buffers in (self._live, self._gone):
            for begin, pages in buffers.items():
                if begin <= address and address + n_bytes <= begin + pages.n_bytes:
                    at = pages.start + address - begin
                    return pages.inside[at : at + n_bytes]
        raise AssertionError(f"{n_bytes} bytes at {address:#x} are not in any buffer")

    @contextlib.contextmanager
    def watched(self, readable: bool) -> Iterator[np.ndarray]:
        """All buffers for a kernel that notes which ones it writes; `readable` even before it has waited."""
        buffers = [*self._live.values(), *self._gone.values()]
        rows = [(pages.inside.ctypes.data, pages.inside.nbytes, pages.written, readable) for pages in buffers]
        watched = np.array(rows, WATCHED)
        yield watched
        for pages, written in zip(buffers, watched["written"], strict=True):
            pages.written = bool(written)

    def forget_writes(self) -> None:
        """The host has waited: whatever was written is there."""
        for pages in self._live.values():
            pages.written = False

    def settle(self) -> None:
        """Nothing that was enqueued is left. Raise where somebody wrote outside of a buffer."""
        gone, self._gone = self._gone, {}
        for pages in [*self._live.values(), *gone.values()]:
            pages.check()
