"""CUDA C++ kernels as functions of a shared library of this machine's CPU, kept between runs.

A library has the kernels that were missing when it was made, and the emulator, which is compiled once; a small file for
each kernel says which library that is. All are named by a hash of everything they depend on.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from halfbyte.gpu_offload.cubin_compiler import KERNELS, kernels_in

HERE = Path(__file__).parent
FLAGS = [
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fPIC",
    "-fvisibility=hidden",
    "-w",
]
C_ALONE = ["-nostdinc++"]  # headers of C++ take longer than most kernels
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


def digest_of(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:20]


@functools.cache
def emulator_key() -> str:
    """Of the emulator and of how things are compiled."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, check=True).stdout
    how = repr((FLAGS, C_ALONE, CHECKS, machine_flags(), platform.machine())).encode()
    return digest_of(version, how, *(path.read_bytes() for path in sorted(HERE.glob("*.?[up][hp]"))))


@functools.cache
def file_key(path: Path) -> str:
    """Of a kernel file and all it includes."""
    content = path.read_bytes()
    included = [
        name for name in re.findall(r"^#include <(.*?)>", content.decode(), re.MULTILINE) if name != "words.cuh"
    ]
    return digest_of(
        emulator_key().encode(), path.name.encode(), content, *(file_key(KERNELS / name).encode() for name in included)
    )


@functools.cache
def files_of_kernels(more: tuple[Path, ...]) -> dict[str, Path]:
    """Path of the file of each kernel, by the kernel's name without arguments."""
    paths = {path.name: path for path in sources(more)}
    return {name: paths[file] for name, (file, _) in kernels_in(paths.values()).items()}


def file_of(kernel: str, more: tuple[Path, ...]) -> Path:
    name, files = kernel.partition("<")[0], files_of_kernels(more)
    assert name in files, f"no kernel file has {name}"
    return files[name]


def text(kernels: list[str], more: tuple[Path, ...]) -> str:
    """The files of the named kernels in a nameless namespace, so that what else is in them is not compiled."""
    include = sorted({f"#include <{file_of(kernel, more)}>" for kernel in kernels})
    entries = [f'{{"{k}", emulator::Kernel<{k}>::KINDS, emulator::Kernel<{k}>::start}},' for k in kernels]
    return "\n".join(
        [
            '#include "by_name.hpp"',
            "namespace {",
            *include,
            "const emulator::Entry ENTRIES[] = {",
            *entries,
            "};",
            "}",
            f"EXPORTED int kernel_count() {{ return {len(kernels)}; }}",
            "EXPORTED const char *kernel_name(int i) { return ENTRIES[i].name; }",
            "EXPORTED const char *kernel_kinds(int i) { return ENTRIES[i].kinds; }",
            "EXPORTED void run_kernel(int i, const unsigned *grid, int threads, long long shared,",
            "    const unsigned long long *words, unsigned order, void *watched, int n_watched,",
            "    char *error, long long room) {",
            "    emulator::watch(watched, n_watched);",
            "    emulator::run(ENTRIES[i].start, grid, threads, shared, words, order, error, room);",
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
    emulator = target.parent / f"{emulator_key()}.o"
    if not emulator.is_file():
        run_compiler(emulator, "-c", str(HERE / "emulator.cpp"))
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        source = Path(work) / "kernels.cpp"
        source.write_text(text(kernels, more))
        try:
            run_compiler(target, *C_ALONE, *CHECKS, f"-I{HERE}", f"-I{KERNELS}", "-shared", str(source), str(emulator))
        except AssertionError as error:
            FAILED[target] = f"kernels {kernels}:\n{error}"
            raise AssertionError(FAILED[target]) from None


def run_compiler(target: Path, *arguments: str) -> None:
    """Make a file, which appears whole or not at all."""
    handle, made = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(handle)
    command = [compiler(), *FLAGS, *machine_flags(), *arguments, "-o", made]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        os.unlink(made)
        raise AssertionError(done.stderr[:6000])
    os.replace(made, target)


def notes_of(kernels: list[str], more: tuple[Path, ...]) -> dict[str, Path]:
    """The small file of each kernel, named by what its kernel file is now."""
    base = folder()
    return {k: base / digest_of(file_key(file_of(k, more)).encode(), k.encode()) for k in kernels}


def libraries(kernels: list[str], more: tuple[Path, ...] = ()) -> tuple[list[Path], int]:
    """Libraries that together have all `kernels`, and how many of them were compiled for it."""
    base = folder()
    notes = notes_of(kernels, more)
    wanted = sorted(k for k in kernels if not (notes[k].is_file() and (base / notes[k].read_text()).is_file()))
    if wanted:
        # A file that was edited since it was last looked at is compiled as it is now, and must be named so.
        file_key.cache_clear()
        notes = notes_of(kernels, more)
        name = digest_of(*(notes[k].name.encode() for k in wanted)) + ".so"
        build(wanted, more, base / name)
        file_key.cache_clear()
        assert notes == notes_of(kernels, more), "kernels were edited while they were compiled: run the tests again"
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
