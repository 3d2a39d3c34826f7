"""How fast this machine reads memory: the roofline that decoding is measured against."""

from __future__ import annotations

import statistics
import time

import numpy as np

from . import isa as isas
from .arena import Arena
from .instruction import LAYOUTS
from .kernels import EXECUTOR
from .loader import LoadedKernels
from .threads import Team, count

SIZE = 512 << 20
"""Bytes read at a time: more than the last cache of most machines, as weights are."""
ROUNDS = 7


def read_gb_s(threads: int | None = None) -> float:
    """GB/s that the given number of threads read together, by the same kernels and team as a model; median of seven."""
    kernels = LoadedKernels(isas.detect(), sorted({"read", *EXECUTOR}))
    team = Team(count(threads), kernels)
    try:
        arena = Arena(SIZE, "the bandwidth measurement")
        arena.bytes[:] = 0
        sinks = np.zeros(16 * team.threads, np.float32)
        source = arena.take(SIZE)
        operands = {"source": source, "size": SIZE, "sink": sinks.ctypes.data}
        words = [kernels.addresses["read"], 0, 0, *LAYOUTS["read"].words(operands)]
        seconds = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            team.run_one(words)
            seconds.append(time.perf_counter() - begin)
        return SIZE / statistics.median(seconds) / 1e9
    finally:
        team.close()
