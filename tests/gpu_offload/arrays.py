"""Arrays to a device and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfbyte.gpu_offload.device import Buffer, Device, Launch


def upload(device: Device, array: np.ndarray) -> Buffer:
    """A buffer with the content of an array."""
    array = np.ascontiguousarray(array)
    buffer = device.allocate(max(array.nbytes, 1))
    device.copy_in(buffer.address, array)
    return buffer


def download(device: Device, buffer: Buffer, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """An array with the content of a buffer, after everything that was enqueued."""
    array = np.empty(shape, dtype)
    assert offset + array.nbytes <= buffer.n_bytes, f"{offset + array.nbytes} bytes of {buffer.n_bytes}"
    device.copy_out(array, buffer.address + offset)
    device.synchronize()
    return array


def run(device: Device, kernel: str, grid: tuple[int, ...], threads: int, *arguments: Any, shared: int = 0) -> None:
    """Load a kernel and enqueue it; buffers stand for their addresses."""
    device.load([kernel], None)
    whole = (*grid, 1, 1, 1)[:3]
    plain = tuple(getattr(argument, "address", argument) for argument in arguments)
    device.launch(Launch(kernel, whole, threads, plain, shared))
