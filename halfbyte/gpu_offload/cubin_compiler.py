"""CUDA C++ to machine code of one architecture by NVRTC, a piece at a time, kept on disk.

A piece is an instance of a template, or all kernels of a file that are no templates, which a compiler emits whether
asked for or not.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import ConfigError
from ..model.backend import Progress
from .cubin_cache import Cubin, cache_root, read_cubin, write_cubin

KERNELS = Path(__file__).parent / "kernels"
MOST_COMPILERS = 8  # each takes about 200 MB
_KERNEL = re.compile(
    r"(template\s*<[^;{}]*>\s*)?(?:extern \"C\" )?__global__ void(?:\s+__launch_bounds__\([^)]*\))?\s+(\w+)\("
)


@dataclass(frozen=True)
class Piece:
    """What is compiled at once: kernels of a file."""

    file: str
    kernels: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """Name of its file in the cache."""
        digest = hashlib.sha256(repr(self.kernels).encode()).hexdigest()[:12]
        return f"{Path(self.file).stem}-{digest}.cubin"


def kernels_in(paths: Iterable[Path]) -> dict[str, tuple[str, bool]]:
    """File of each kernel, and whether it is a template."""
    return {
        name: (path.name, bool(template))
        for path in sorted(paths)
        for template, name in _KERNEL.findall(path.read_text(encoding="utf-8"))
    }


@functools.cache
def _kernel_files() -> dict[str, tuple[str, bool]]:
    return kernels_in(KERNELS.glob("*.cuh"))


def pieces_of(kernels: Iterable[str]) -> list[Piece]:
    """The pieces that together have all of `kernels`."""
    files = _kernel_files()
    found = set()
    for kernel in kernels:
        name = kernel.partition("<")[0]
        assert name in files, f"no kernel file has {name}; there are {', '.join(files)}"
        file, template = files[name]
        plain = sorted(k for k, (where, is_template) in files.items() if where == file and not is_template)
        found.add(Piece(file, (kernel,) if template else tuple(plain)))
    return sorted(found, key=lambda piece: (piece.file, piece.kernels))


class CubinCompiler:
    """Kernels for one architecture."""

    def __init__(self, capability: tuple[int, int]) -> None:
        from cupy_backends.cuda.libs import nvrtc

        self._nvrtc: Any = nvrtc
        self.arch = f"sm_{capability[0]}{capability[1]}"
        self._options = ("--std=c++17", "--fmad=false", f"-arch={self.arch}")
        self.folder = cache_root() / f"cuda-{self.arch}-{self._key()}"

    def _key(self) -> str:
        digest = hashlib.sha256(repr((__version__, self._nvrtc.getVersion(), self._options)).encode())
        for path in sorted(KERNELS.glob("*.cuh")):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:20]

    def cubins(self, kernels: Iterable[str], progress: Progress | None) -> tuple[list[Cubin], int]:
        """Code that has all of `kernels`, and how many pieces were compiled for it."""
        pieces = pieces_of(kernels)
        cubins = {piece: read_cubin(self.folder / piece.file_name) for piece in pieces}
        missing = [piece for piece, cubin in cubins.items() if cubin is None]
        if missing:
            self._check_arch()
            with ThreadPoolExecutor(min(len(missing), MOST_COMPILERS, os.cpu_count() or 1)) as pool:
                for done, (piece, cubin) in enumerate(zip(missing, pool.map(self.compile, missing), strict=True), 1):
                    write_cubin(self.folder / piece.file_name, cubin)
                    cubins[piece] = cubin
                    if progress is not None:
                        progress("compile", done, len(missing))
        return [cubin for cubin in cubins.values() if cubin is not None], len(missing)

    def _check_arch(self) -> None:
        known = self._nvrtc.getSupportedArchs()
        if int(self.arch[3:]) not in known:
            raise ConfigError(
                f"this GPU ({self.arch}) is newer than the installed NVRTC {self._nvrtc.getVersion()}: "
                "pip install --upgrade the package nvidia-cuda-nvrtc (of CUDA 12: nvidia-cuda-nvrtc-cu12)",
                key="gpu_layers",
            )

    def compile(self, piece: Piece) -> Cubin:
        """Compile a piece; a mistake in it is an AssertionError with what the compiler said."""
        nvrtc = self._nvrtc
        program = nvrtc.createProgram(f"#include <{piece.file}>\n", "piece.cu", (), ())
        try:
            for kernel in piece.kernels:
                nvrtc.addNameExpression(program, kernel)
            try:
                nvrtc.compileProgram(program, (*self._options, f"-I{KERNELS}"))
            except nvrtc.NVRTCError as error:
                raise AssertionError(f"{', '.join(piece.kernels)}:\n{nvrtc.getProgramLog(program)}") from error
            symbols = {kernel: nvrtc.getLoweredName(program, kernel) for kernel in piece.kernels}
            return Cubin(symbols, nvrtc.getCUBIN(program))
        finally:
            nvrtc.destroyProgram(program)
