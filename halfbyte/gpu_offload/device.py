"""`Device`: all that lowering and executables know of a GPU. `cuda_device.py` is the real one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..model.backend import Progress


@dataclass(frozen=True)
class Launch:
    """One run of a kernel: `grid` blocks of `threads`, each with `shared` bytes of dynamic shared memory.

    `kernel` names a `__global__` function or an instance of a template, as in "linear<Q4_K, 1>". Arguments that are
    whole numbers become pointers or `i64`, others `float`; kernels take nothing else.
    """

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    arguments: tuple[int | float, ...]
    shared: int = 0


@dataclass(frozen=True)
class Product:
    """`out[t, n] = x[t] . weight[n]`: addresses of halves [T, M] and [N, M] and of floats [T, N], all rows dense."""

    x: int
    weight: int
    out: int
    tokens: int
    columns: int
    rows: int


class Buffer(Protocol):
    """Memory of a device, free again when nobody holds it."""

    address: int
    n_bytes: int


class Recording(Protocol):
    """Launches and copies that were recorded once, to be run again as one."""

    def replay(self) -> None:
        """Enqueue all of it."""


class Device(Protocol):
    """One GPU with one queue: whatever is enqueued runs in order. One thread at a time may use it."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int
    """Most dynamic shared memory of a block."""

    def load(self, kernels: Collection[str], progress: Progress | None) -> int:
        """Make kernels ready, compiled or from the cache; how many were compiled."""

    def allocate(self, n_bytes: int) -> Buffer:
        """Memory aligned to 256 bytes; raises `ResourceError` with the bytes needed and free."""

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Memory of the host that copies run from and to while nobody waits."""

    def launch(self, launch: Launch) -> None:
        """Enqueue a kernel."""

    def multiply(self, product: Product) -> None:
        """Enqueue a product of halves, summed in floats."""

    def copy_in(self, address: int, source: NDArray[Any]) -> None:
        """Enqueue a copy to the device; from pinned memory the caller leaves the source alone until it has run."""

    def copy_out(self, target: NDArray[Any], address: int) -> None:
        """Enqueue a copy to the host; there when `synchronize` returns."""

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        """Enqueue a copy within the device."""

    def record(self, enqueue: Callable[[], None]) -> Recording:
        """What `enqueue` enqueues, without running it. It may neither allocate nor wait."""

    def synchronize(self) -> None:
        """Wait for everything; raises `ResourceError` where the device is lost."""

    def free_bytes(self) -> int:
        """Memory that is left on the device, whoever uses the rest."""

    def close(self) -> None:
        """Let go of everything; may be called twice."""
