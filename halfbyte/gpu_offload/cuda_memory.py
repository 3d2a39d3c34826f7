"""Memory of a card and of the host for it."""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cuda_driver import CudaError, Driver


class CudaBuffer:
    """Memory from a pool; it goes back when this is dropped, and whoever gets it next runs behind us on the stream."""

    address: int
    n_bytes: int

    def __init__(self, pointer: Any, n_bytes: int) -> None:
        self._pointer = pointer
        self.address = int(pointer.ptr)
        self.n_bytes = n_bytes


def pinned_array(driver: Driver, context: int, n_bytes: int) -> NDArray[np.uint8]:
    """Page-locked memory, unlocked when no array of it is left."""
    address = driver.handle("cuMemHostAlloc", max(n_bytes, 1), 0)
    memory = (ctypes.c_uint8 * n_bytes).from_address(address)
    weakref.finalize(memory, in_context, driver, context, "cuMemFreeHost", address).atexit = False
    return np.ctypeslib.as_array(memory)


def in_context(driver: Driver, context: int, call: str, address: int) -> None:
    """Free what has no owner any more, from whatever thread; with a lost or closed device it is gone already."""
    with contextlib.suppress(CudaError):
        driver.call("cuCtxPushCurrent_v2", context)
        try:
            driver.call(call, address)
        finally:
            driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
