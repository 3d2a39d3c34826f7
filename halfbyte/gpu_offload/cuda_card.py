"""The card that is used, or the error that says what is missing for using one."""

from __future__ import annotations

import ctypes
import importlib.util
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError, ResourceError, UnsupportedError
from .cuda_driver import MAJOR, MINOR, MULTIPROCESSORS, SHARED_BYTES, CudaError, Driver, find_driver

EXTRAS = "pip install 'halfbyte[cuda12]' (drivers of CUDA 12) or pip install 'halfbyte[cuda13]' (of CUDA 13)"
OLDEST = (8, 0)
NO_DEVICE = 100


@dataclass(frozen=True)
class Card:
    """A GPU as the driver counts and describes it."""

    index: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int


def require_driver() -> tuple[Driver, Card]:
    """The driver and the first card that will do; raises `ResourceError` or `UnsupportedError`."""
    driver = find_driver()
    if driver is None:
        raise ResourceError("no NVIDIA driver on this machine; install one, or leave out gpu_layers")
    try:
        driver.call("cuInit", 0)
        cards = [_describe(driver, i) for i in range(driver.whole("cuDeviceGetCount"))]
    except CudaError as error:
        if error.code != NO_DEVICE:
            raise ResourceError(f"the NVIDIA driver does not start: {error}; try nvidia-smi") from error
        cards = []
    if not cards:
        raise ResourceError("the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it); leave out gpu_layers")
    for card in cards:
        if card.capability >= OLDEST:
            return driver, card
    seen = ", ".join(f"{card.name} has {card.capability[0]}.{card.capability[1]}" for card in cards)
    raise UnsupportedError(f"a GPU of compute capability 8.0 or later is needed (2020, Ampere); {seen}")


def _describe(driver: Driver, index: int) -> Card:
    device = driver.whole("cuDeviceGet", index)
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, len(name), device)

    def attribute(number: int) -> int:
        return driver.whole("cuDeviceGetAttribute", number, device)

    capability = attribute(MAJOR), attribute(MINOR)
    return Card(index, name.value.decode(), capability, attribute(MULTIPROCESSORS), attribute(SHARED_BYTES))


def require_extra() -> None:
    """Raise `ConfigError` where CuPy is not installed; imports nothing."""
    if importlib.util.find_spec("cupy") is None:
        raise ConfigError(f"layers on a GPU need CuPy: {EXTRAS}", key="gpu_layers")


def require_cupy(driver: Driver) -> Any:
    """CuPy, with libraries that this driver can run; raises `ConfigError`."""
    require_extra()
    try:
        import cupy
        from cupy_backends.cuda import libs
        from cupy_backends.cuda.api import runtime

        libs.nvrtc.getVersion()
        libs.cublas.getVersion  # noqa: B018  its library is loaded when it is asked for
        _ = cupy.cuda.MemoryPool, cupy.cuda.Stream.from_external, cupy.cuda.memory.OutOfMemoryError
        wanted = runtime.runtimeGetVersion() // 1000
    except Exception as error:  # an old one, or half of one: whatever it raises, it does not load
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(f"CuPy is here but does not load ({reason}); {EXTRAS}", key="gpu_layers") from error
    there = driver.whole("cuDriverGetVersion")
    if there // 1000 < wanted:
        raise ConfigError(
            f"the driver runs CUDA {there // 1000}.{there % 1000 // 10}, CuPy was built for CUDA {wanted}: "
            f"update the driver, or pip uninstall cupy-cuda{wanted}x and pip install 'halfbyte[cuda12]'",
            key="gpu_layers",
        )
    return cupy
