"""`EmulatedDevice`: the face of a GPU, on the CPU. Nothing runs before somebody waits: a GPU promises no more."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from halfbyte.errors import ResourceError
from halfbyte.gpu_offload.device import Launch, Product
from halfbyte.model.backend import Progress

from .kernel import Kernel, load
from .memory import POISON, EmulatedBuffer, Memory

Work = Callable[[], None]

# Kernels that read, before they have waited, a part of a buffer of which another part is being written: pages full of
# tokens that no kernel of this step writes. What is watched is whole buffers.
EARLY_READERS = ("attention_decode<",)


class EmulatedRecording:
    def __init__(self, device: EmulatedDevice, work: list[Work]) -> None:
        self._device = device
        self._work = work

    def replay(self) -> None:
        for one in self._work:
            self._device.enqueue(one)


class EmulatedDevice:
    """`order` 0 runs the threads of a block ascending, 1 descending, others in random orders of that seed."""

    name = "emulated"
    capability = (8, 0)
    multiprocessors = 4
    shared_bytes = 99 << 10  # the least of all cards of compute capability 8.0 and later

    def __init__(self, *, budget: int = 1 << 32, order: int = 0, more_kernels: tuple[Path, ...] = ()) -> None:
        self.order = order
        self.launched: list[Launch] = []
        self._memory = Memory(budget)
        self._kernels: dict[str, Kernel] = {}
        self._more = more_kernels
        self._queue: list[Work] = []
        self._recorded: list[Work] | None = None
        self._pinned: list[weakref.ref[np.ndarray]] = []
        self._left: int | None = None

    def fail_after(self, n: int) -> None:
        """The device is lost when it has run `n` more pieces of work."""
        self._left = n

    def _alive(self) -> None:
        if self._left is not None and self._left < 0:
            raise ResourceError("the GPU was lost; load the model again")

    # --- what a device does ---

    def load(self, kernels: Collection[str], progress: Progress | None) -> int:
        names = sorted(set(kernels) - set(self._kernels))
        found, compiled = load(names, self._more)
        self._kernels.update(found)
        if progress is not None and compiled:
            progress("compile", compiled, compiled)
        return compiled

    def allocate(self, n_bytes: int) -> EmulatedBuffer:
        self._alive()
        assert self._recorded is None, "allocates while recording"
        assert n_bytes > 0, "allocates nothing"
        free = self.free_bytes()
        if n_bytes > free:
            raise ResourceError(f"the GPU has {free} bytes free of {n_bytes} needed", needed=n_bytes, free=free)
        return self._memory.allocate(n_bytes)

    def pinned(self, n_bytes: int) -> np.ndarray:
        memory = np.full(n_bytes, POISON, np.uint8)
        self._pinned.append(weakref.ref(memory))
        return memory

    def launch(self, launch: Launch) -> None:
        assert launch.kernel in self._kernels, f"kernel {launch.kernel} was not loaded"
        assert 0 < launch.threads <= 1024, f"{launch.kernel}: {launch.threads} threads"
        assert launch.threads % 32 == 0, f"{launch.kernel}: {launch.threads} threads are not whole warps"
        assert min(launch.grid) > 0, f"{launch.kernel}: grid {launch.grid}"
        assert max(launch.grid[1:]) < 65536, f"{launch.kernel}: grid {launch.grid}"
        assert launch.shared <= self.shared_bytes, f"{launch.kernel}: {launch.shared} bytes of shared memory"
        kernel = self._kernels[launch.kernel]
        words = kernel.words(launch.arguments)
        self.launched.append(launch)

        def run() -> None:
            with self._memory.watched(launch.kernel.startswith(EARLY_READERS)) as watched:
                kernel.run(launch, words, self.order, watched)

        self.enqueue(run)

    def multiply(self, product: Product) -> None:
        def run() -> None:
            t, n, m = product.tokens, product.rows, product.columns
            x = self._memory.bytes_at(product.x, 2 * t * m).view(np.float16).reshape(t, m).astype(np.float32)
            weight = self._memory.bytes_at(product.weight, 2 * n * m).view(np.float16).reshape(n, m).astype(np.float32)
            self._memory.bytes_at(product.out, 4 * t * n).view(np.float32).reshape(t, n)[:] = x @ weight.T

        self.enqueue(run)

    def copy_in(self, address: int, source: np.ndarray) -> None:
        assert source.flags.c_contiguous, "copies from an array with gaps"
        content = source if self._is_pinned(source) else source.copy()

        def run() -> None:
            self._memory.bytes_at(address, content.nbytes)[:] = content.reshape(-1).view(np.uint8)

        if content.nbytes:
            self.enqueue(run)

    def copy_out(self, target: np.ndarray, address: int) -> None:
        assert target.flags.c_contiguous, "copies to an array with gaps"

        def run() -> None:
            target.reshape(-1).view(np.uint8)[:] = self._memory.bytes_at(address, target.nbytes)

        if target.nbytes and self._recorded is None:
            target.reshape(-1).view(np.uint8)[:] = POISON
        if target.nbytes:
            self.enqueue(run)

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        def run() -> None:
            self._memory.bytes_at(target, n_bytes)[:] = self._memory.bytes_at(source, n_bytes).copy()

        if n_bytes:
            self.enqueue(run)

    def record(self, enqueue: Callable[[], None]) -> EmulatedRecording:
        assert self._recorded is None, "records while recording"
        self._alive()
        self._recorded = []
        try:
            enqueue()
            return EmulatedRecording(self, self._recorded)
        finally:
            self._recorded = None

    def synchronize(self) -> None:
        assert self._recorded is None, "waits while recording"
        self._alive()
        queue, self._queue = self._queue, []
        try:
            for work in queue:
                if self._left is not None:
                    self._left -= 1
                    self._alive()
                work()
        finally:
            self._memory.forget_writes()
        self._memory.settle()

    def free_bytes(self) -> int:
        return self._memory.budget - self._memory.used

    def close(self) -> None:
        self._queue.clear()
        self._kernels.clear()

    # --- inside ---

    def enqueue(self, work: Work) -> None:
        self._alive()
        (self._queue if self._recorded is None else self._recorded).append(work)

    def _is_pinned(self, source: np.ndarray) -> bool:
        begin, end = source.ctypes.data, source.ctypes.data + source.nbytes
        self._pinned = [ref for ref in self._pinned if ref() is not None]
        for ref in self._pinned:
            memory = ref()
            if memory is not None and memory.ctypes.data <= begin and end <= memory.ctypes.data + memory.nbytes:
                return True
        return False
