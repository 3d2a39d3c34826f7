"""`one_blas_thread`: NumPy's matrix products by the calling thread alone.

Threads that each want all cores for their own products wait for each other in busy loops: with several of ours at work
that takes many times longer than one thread each. NumPy has no word for it, the library that it brings has.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """For the whole process, until it ends; without effect where NumPy has another library than OpenBLAS."""
    library = _openblas()
    if library is None:
        yield
        return
    get, put = library
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            with contextlib.suppress(OSError):
                library = ctypes.CDLL(str(path))
                for name in _NAMES:
                    if hasattr(library, name.format("set")) and hasattr(library, name.format("get")):
                        return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
