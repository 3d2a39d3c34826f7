"""Object code of kernels on disk, good for exactly one CPU, one compiler and one state of the sources.

What a file says of its code is the entry point's symbol; a damaged one is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

from .._version import __version__
from .isa import Isa, target


def folder_for(isa: Isa) -> Path:
    """Where the kernels of `isa` for this machine and these sources lie."""
    return _root() / f"{isa.name}-{_key(isa)}"


def _root() -> Path:
    named = os.environ.get("HALFBYTE_KERNEL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("HALFBYTE_CACHE")
    if base:
        return Path(base) / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("halfbyte", appauthor=False)) / "kernels"


@functools.cache
def _key(isa: Isa) -> str:
    """Hash of all that object code depends on. numba's own key knows neither helpers in other files nor our ISA."""
    import llvmlite

    digest = hashlib.sha256()
    here = Path(__file__).parent
    for source in sorted(here.rglob("*.py")):
        digest.update(str(source.relative_to(here)).encode())
        digest.update(source.read_bytes())
    # A release of numba works with one llvmlite only, and asking for its own version costs as much as a small model.
    digest.update(repr((__version__, llvmlite.__version__, isa.name, target(isa), sys.platform)).encode())
    return digest.hexdigest()[:20]
