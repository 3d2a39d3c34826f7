"""Compile kernels in a process of its own: `python -m halfbyte.cpu_kernels.compile ISA FOLDER KERNEL...`.

A process of its own because numba takes its target CPU from the environment, holds 150 MB once loaded, and must not be
touched in a host program that may use it itself. Prints each kernel's name when its object file stands in FOLDER.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from ..code_file import write_code
from .isa import ISAS
from .kernels import module_of


def main(isa: str, folder: str, *kernels: str) -> None:
    """Compile `kernels` for `isa` into `folder`."""
    from .lowerings import active

    active.use(ISAS[isa])
    from .jit import compile_kernel

    for name in kernels:
        kernel = importlib.import_module(f".{module_of(name)}", __package__).KERNELS[name]
        kernel.__qualname__ = kernel.__name__ = name  # numba names symbols by it: one name, one kernel
        symbol, code, _ = compile_kernel(kernel)
        write_code(Path(folder) / f"{name}.o", symbol, code)
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
