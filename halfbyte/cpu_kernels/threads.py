"""How many threads, and the team of them that runs programs."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from . import clock
from .instruction import STATE, WORDS, state
from .kernels import EXECUTOR
from .loader import LoadedKernels

MOST = 256

_KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_longlong] * 4)
"""A kernel as Python calls it: without Python's lock. See `docs/decisions/ctypes-calls-kernels.md`."""
_WORD = {name: state(name) // 8 for name in STATE}


def count(threads: int | None) -> int:
    """The number asked for, else the physical cores this process may use, within a container's quota."""
    if threads is None:
        return max(1, min(len(_physical(_allowed())), _quota(), MOST))
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST:
        raise ConfigError(f"threads must be a whole number from 1 to {MOST}, not {threads!r}", key="threads")
    return threads


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _physical(cpus: set[int]) -> set[tuple[str, ...]]:
    """One entry a core: hyperthreads share the units these kernels fill. Slow cores of mixed CPUs are left out."""
    cores: dict[tuple[str, ...], int] = {}
    for cpu in cpus:
        folder = Path(f"/sys/devices/system/cpu/cpu{cpu}")
        siblings = _read(folder / "topology/thread_siblings_list") or str(cpu)
        speed = _read(folder / "cpu_capacity") or _read(folder / "cpufreq/cpuinfo_max_freq") or "0"
        cores[(siblings,)] = int(speed) if speed.isdigit() else 0
    fastest = max(cores.values())
    return {core for core, speed in cores.items() if speed >= 0.7 * fastest}


def _quota() -> int:
    """CPUs a control group grants (v2, then v1), rounded up."""
    period = quota = ""
    v2 = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(v2) == 2:
        quota, period = v2
    else:
        quota = _read(Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
        period = _read(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return MOST
    return max(1, -(-int(quota) // int(period)))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


class Team:
    """Worker threads that run programs in step with the thread that calls `run`.

    Between steps a worker waits in a loop for about a millisecond and then sleeps, so a stream of steps costs no
    wake-ups and an idle model no time.
    """

    def __init__(self, threads: int, kernels: LoadedKernels) -> None:
        self.threads = threads
        self._kernels = kernels  # a worker may be in their code when nobody else holds them any more
        self._begin, self._run, self._work = (_KERNEL(kernels.addresses[name]) for name in EXECUTOR)
        self.state = np.zeros(len(STATE) + 8 + 8 * threads, np.int64)
        self._shift = -self.state.ctypes.data % 64 // 8
        self.address = self.state.ctypes.data + 8 * self._shift
        self.set("yielding", _yield_address())
        for name, value in zip(("clock", "clock_id"), clock.reader(), strict=True):
            self.set(name, value)
        self._wake = [self._shift + (state("threads") + 64 * tid + 16) // 8 for tid in range(1, threads)]
        self._program: NDArray[np.int64] | None = None
        self._stamps: NDArray[np.int64] | None = None
        self._closing = False
        self._sleep = [threading.Semaphore(0) for _ in range(1, threads)]
        self._workers = [
            threading.Thread(target=self._worker, args=(tid,), name=f"halfbyte-{tid}", daemon=True)
            for tid in range(1, threads)
        ]
        for worker in self._workers:
            worker.start()

    def set(self, name: str, value: int) -> None:
        """Set a word of the state."""
        self.state[self._shift + _WORD[name]] = value

    def run(self, program: NDArray[np.int64], length: int, stamps: NDArray[np.int64] | None = None) -> None:
        """Run a program of `length` instructions to its end; Python's lock is released meanwhile.

        `stamps` is room for the times of each thread: see `Trace`.
        """
        if stamps is not self._stamps:
            self._stamps = stamps
            self.set("stamps", 0 if stamps is None else stamps.ctypes.data)
        if program is not self._program:
            self._program = program
            self.set("program", program.ctypes.data)
        self.set("length", length)
        self._begin(0, self.address, 0, self.threads)
        for word, sleep in zip(self._wake, self._sleep, strict=True):
            if self.state[word]:
                sleep.release()
        self._run(0, self.address, 0, self.threads)

    def run_one(self, words: Sequence[int]) -> NDArray[np.int64]:
        """Run a single instruction; returns its words as they stand afterwards."""
        program = np.zeros(WORDS, np.int64)
        program[: len(words)] = words
        self.run(program, 1)
        return program

    def _worker(self, tid: int) -> None:
        while not self._closing:
            self._work(0, self.address, tid, self.threads)
            self._sleep[tid - 1].acquire()

    def dismiss(self) -> None:
        """Let the workers end, without waiting for them."""
        self._closing = True
        for sleep in self._sleep:
            sleep.release()

    def close(self) -> None:
        """End the workers; may be called twice."""
        self.dismiss()
        for worker in self._workers:
            worker.join()
        self._workers = []


def _yield_address() -> int:
    """Address of the system's function that lets another thread run."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0
