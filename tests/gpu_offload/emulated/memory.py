"""Device memory on the host: poisoned when it is made, between guards that are looked at."""

from __future__ import annotations

import weakref

import numpy as np

GUARD = 512
INTACT = 0xA5
POISON = 0xFF


class EmulatedBuffer:
    """Memory aligned to 256 bytes. Its storage outlives it until whatever was enqueued has run."""

    address: int
    n_bytes: int

    def __init__(self, storage: np.ndarray, n_bytes: int) -> None:
        begin = storage.ctypes.data + GUARD
        self.address = (begin + 255) // 256 * 256
        self.n_bytes = n_bytes


class Memory:
    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used = 0
        self._live: dict[int, tuple[np.ndarray, int, int]] = {}
        self._gone: list[tuple[np.ndarray, int, int]] = []

    def allocate(self, n_bytes: int) -> EmulatedBuffer:
        storage = np.full(n_bytes + 2 * GUARD + 256, POISON, np.uint8)
        buffer = EmulatedBuffer(storage, n_bytes)
        start = buffer.address - storage.ctypes.data
        storage[:start] = INTACT
        storage[start + n_bytes :] = INTACT
        self.used += n_bytes
        self._live[buffer.address] = (storage, start, n_bytes)
        weakref.finalize(buffer, self._free, buffer.address)
        return buffer

    def _free(self, address: int) -> None:
        entry = self._live.pop(address)
        self.used -= entry[2]
        self._gone.append(entry)

    def check(self, settled: bool) -> None:
        """Raise where somebody wrote outside of a buffer; `settled` says that nothing enqueued is left."""
        for storage, start, n_bytes in [*self._live.values(), *self._gone]:
            for guard, where in ((storage[:start], "before"), (storage[start + n_bytes :], "behind")):
                touched = np.flatnonzero(guard != INTACT)
                distance = f"{start - touched[-1]} bytes" if where == "before" and touched.size else f"{touched[:1]}"
                assert not touched.size, f"wrote {where} a buffer of {n_bytes} bytes, {distance} away"
        if settled:
            self._gone.clear()
