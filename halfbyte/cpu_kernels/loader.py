"""Kernels by name, ready to call: from the object cache, or compiled first. llvmlite loads; numba is not imported."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..code_file import read_code
from ..errors import ResourceError
from ..model.backend import Progress
from .isa import Isa, target
from .object_cache import folder_for

_NEVER_REACHED = (
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_do_raise",
    "numba_unpickle",
    "numba_runtime_build_excinfo_struct",
    "NRT_Free",
    "NRT_decref",
    "NRT_incref",
)
"""What numba's wrapper calls to raise a Python error; kernels raise none."""

_OURS = f"{ResourceError.__module__}.{ResourceError.__name__}: "

Kernels = dict[str, int]
"""Kernel name to address of a function of four int64."""


class LoadedKernels:
    """Machine code of one model's kernels. Addresses are valid as long as this object lives."""

    def __init__(self, isa: Isa, names: Sequence[str], progress: Progress | None = None) -> None:
        self.isa = isa
        self.compiled = _compile_missing(isa, names, progress)
        self._engine = _engine()
        symbols = {}
        for name in names:
            symbols[name] = _add(self._engine, folder_for(isa) / f"{name}.o")
        self._engine.finalize_object()
        self.addresses: Kernels = {name: self._engine.get_function_address(symbol) for name, symbol in symbols.items()}


def _add(engine: Any, path: Path) -> str:
    import llvmlite.binding as llvm

    found = read_code(path)
    if found is None:
        raise ResourceError(f"the compiled kernel {path} vanished or is damaged; start again to compile it anew")
    symbol, code = found
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    return symbol


def _engine() -> Any:
    """An empty LLVM execution engine. Its parts that only raise Python errors are never reached, so they do nothing."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("define void @halfbyte_nothing() { ret void }"), machine)
    engine.finalize_object()
    nothing = engine.get_function_address("halfbyte_nothing")
    for symbol in _NEVER_REACHED:
        llvm.add_symbol(symbol, nothing)
    return engine


def _compile_missing(isa: Isa, names: Sequence[str], progress: Progress | None) -> int:
    """Compile what the cache lacks, in as many processes as there are cores; returns how many kernels that were."""
    folder = folder_for(isa)
    missing = [name for name in names if read_code(folder / f"{name}.o") is None]
    if not missing:
        return 0
    if getattr(sys, "frozen", False):  # there `sys.executable` is the app, which would start itself without end
        raise ResourceError(
            f"{len(missing)} kernels for {isa.name} are not in {folder}; a packaged app cannot compile them: compile "
            "them ahead on a machine of the same kind of CPU and ship the folder, see docs/embedding.md"
        )
    if progress:
        progress("compile", 0, len(missing))
    workers = min(len(missing), max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1), 8)
    with tempfile.TemporaryFile("w+") as complaints:
        processes = [_start(isa, folder, share, complaints) for share in shares(missing, workers)]
        try:
            _watch(processes, len(missing), progress)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if any(process.returncode for process in processes):
            complaints.seek(0)
            raise ResourceError(f"compiling kernels for {isa.name} failed: {_last_line(complaints.read())}")
    return len(missing)


_SECONDS = {"attention": 20.0, "linear": 4.0, "experts": 4.0}
"""About how long kernels take to compile; others take half a second."""


def shares(names: Sequence[str], workers: int) -> list[list[str]]:
    """Names for each of `workers` processes, the slowest first, so that all end at about the same time."""
    seconds = {name: _SECONDS.get(name.partition("_")[0], 0.5) for name in names}
    result: list[list[str]] = [[] for _ in range(workers)]
    for name in sorted(names, key=lambda name: -seconds[name]):
        min(result, key=lambda share: sum(seconds[other] for other in share)).append(name)
    return result


def _start(isa: Isa, folder: Path, names: Sequence[str], complaints: Any) -> subprocess.Popen[str]:
    cpu, features = target(isa)
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": cpu,
        "NUMBA_CPU_FEATURES": features,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-m", "halfbyte.cpu_kernels.compile", isa.name, str(folder), *names]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True
    )


def _watch(processes: Sequence[subprocess.Popen[str]], total: int, progress: Progress | None) -> None:
    """Report every line that any process prints, until all are done."""
    import threading

    lock, done = threading.Lock(), 0

    def follow(process: subprocess.Popen[str]) -> None:
        nonlocal done
        assert process.stdout is not None
        with process.stdout as lines:
            for _ in lines:
                with lock:
                    done += 1
                    if progress:
                        progress("compile", done, total)
        process.wait()

    threads = [threading.Thread(target=follow, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    # A traceback ends with the error's class and, for ours, a message that stands alone.
    return lines[-1].removeprefix(_OURS) if lines else "the compiler stopped without a word"
