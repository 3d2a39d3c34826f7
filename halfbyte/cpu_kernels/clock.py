"""The clock of `time.perf_counter`, as kernels read it: a function that writes two words to an address."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLACE_ALONE = -1
"""What stands for the clock's number where the function takes the address only."""


def _monotonic() -> int:
    # On macOS perf_counter stands still while the machine sleeps, which CLOCK_MONOTONIC does not.
    return int(getattr(time, "CLOCK_UPTIME_RAW", getattr(time, "CLOCK_MONOTONIC", PLACE_ALONE)))


def reader() -> tuple[int, int]:
    """Address of the function and the number of the clock it is asked for."""
    function: Any
    if sys.platform == "win32":
        function, which = ctypes.WinDLL("kernel32").QueryPerformanceCounter, PLACE_ALONE
    else:
        function, which = ctypes.CDLL(None).clock_gettime, _monotonic()
    return ctypes.cast(function, ctypes.c_void_p).value or 0, which


def seconds(words: NDArray[np.int64]) -> NDArray[np.float64]:
    """f64[...] on the scale of `time.perf_counter` from i64[..., 2]."""
    if sys.platform == "win32":
        ticks = ctypes.c_int64()
        ctypes.WinDLL("kernel32").QueryPerformanceFrequency(ctypes.byref(ticks))
        return words[..., 0] / ticks.value
    return words[..., 0] + 1e-9 * words[..., 1]
