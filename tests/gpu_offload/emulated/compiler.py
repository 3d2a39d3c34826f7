"""CUDA C++ kernels as functions of a shared library of this machine's CPU, kept between runs.

A library is compiled from all kernel files and has the kernels that were missing when it was made; a small file for
each kernel says which library that is. Both are named by a hash of everything they depend on.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from halfbyte.gpu_offload.cubin_compiler import KERNELS, kernels_in

HERE = Path(__file__).parent
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno", "-fPIC", "-shared", "-w"]
CHECKS = ["-fsanitize=alignment,bounds,shift-exponent", "-fsanitize-undefined-trap-on-error"]


@functools.cache
def compiler() -> str | None:
    return next((found for name in ("g++", "clang++", "c++") if (found := shutil.which(name))), None)


def missing() -> str | None:
    """Why kernels cannot be run here, if so."""
    if platform.machine().lower() not in ("x86_64", "amd64", "aarch64", "arm64"):
        return f"kernels run on x86-64 and aarch64, this is {platform.machine()}"
    if os.name != "posix":
        return "kernels run on POSIX systems"
    return None if compiler() else "no C++ compiler: none of g++, clang++ and c++ is on the path"


def machine_flags() -> list[str]:
    """Fused multiply-adds as instructions where the CPU has them, since a call for each takes long."""
    try:
        known = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return []
    return ["-mfma"] if "fma" in known else []


def folder() -> Path:
    named = os.environ.get("HALFBYTE_CACHE")
    base = Path(named) if named else Path(tempfile.gettempdir()) / f"halfbyte-{os.getuid()}"
    made = base / "emulated"
    made.mkdir(parents=True, exist_ok=True)
    return made


def sources(more: tuple[Path, ...]) -> list[Path]:
    """Files whose kernels can be had: the project's without its words, and a test's own."""
    files = sorted(path for path in KERNELS.glob("*.cuh") if path.name != "words.cuh")
    return [*files, *more]


def key(more: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in [*sources(more), *sorted(HERE.glob("*.?[up][hp]"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    digest.update(repr((version, FLAGS, CHECKS, machine_flags(), platform.machine())).encode())
    return digest.hexdigest()[:16]


def text(kernels: list[str], more: tuple[Path, ...]) -> str:
    """The files of the named kernels in a nameless namespace, so that what else is in them is not compiled."""
    paths = {path.name: path for path in sources(more)}
    files = kernels_in(paths.values())
    names = {kernel.partition("<")[0] for kernel in kernels}
    assert names <= files.keys(), f"no kernel file has {', '.join(names - files.keys())}"
    include = [f"#include <{paths[file]}>" for file in sorted({files[name][0] for name in names})]
    entries = [f'{{"{k}", Kernel<{k}>::KINDS, Kernel<{k}>::start}},' for k in kernels]
    return "\n".join(
        [
            '#include "by_name.hpp"',
            "namespace {",
            *include,
            "namespace emulator {",
            "const Entry ENTRIES[] = {",
            *entries,
            "};",
            "} }",
            f"EXPORTED int kernel_count() {{ return {len(kernels)}; }}",
            "EXPORTED const char *kernel_name(int i) { return emulator::ENTRIES[i].name; }",
            "EXPORTED const char *kernel_kinds(int i) { return emulator::ENTRIES[i].kinds; }",
            "EXPORTED void run_kernel(int i, const unsigned *grid, int threads, long long shared,",
            "    const unsigned long long *words, unsigned order, void *watched, int n_watched,",
            "    char *error, long long room) {",
            "    emulator::watched = (emulator::Watched *)watched, emulator::watched_count = n_watched;",
            "    emulator::run(emulator::ENTRIES[i].start, grid, threads, shared, words, order, error, room);",
            "}",
        ]
    )


def write(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


FAILED: dict[Path, str] = {}


def build(kernels: list[str], more: tuple[Path, ...], target: Path) -> None:
    """Compile; a mistake in a kernel is an AssertionError with what the compiler said."""
    assert target not in FAILED, FAILED[target]
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        source, made = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
        source.write_text(text(kernels, more))
        command = [compiler(), *FLAGS, *CHECKS, *machine_flags(), f"-I{HERE}", f"-I{KERNELS}", "-o", made, source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            FAILED[target] = f"kernels {kernels}:\n{done.stderr[:6000]}"
            raise AssertionError(FAILED[target])
        os.replace(made, target)


def libraries(kernels: list[str], more: tuple[Path, ...] = ()) -> tuple[list[Path], int]:
    """Libraries that together have all `kernels`, and how many of them were compiled for it."""
    base, known = folder(), key(more)
    notes = {k: base / f"{known}-{hashlib.sha256(k.encode()).hexdigest()[:16]}" for k in kernels}
    wanted = sorted(k for k in kernels if not (notes[k].is_file() and (base / notes[k].read_text()).is_file()))
    if wanted:
        name = f"{known}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:16]}.so"
        build(wanted, more, base / name)
        for k in wanted:
            write(notes[k], name.encode())
    return sorted({base / note.read_text() for note in notes.values()}), len(wanted)


@functools.cache
def library(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    loaded.kernel_name.restype = loaded.kernel_kinds.restype = ctypes.c_char_p
    p, i, n = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    loaded.run_kernel.argtypes = [i, p, i, n, p, ctypes.c_uint, p, i, p, n]
    loaded.run_kernel.restype = None
    return loaded
