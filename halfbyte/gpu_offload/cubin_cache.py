"""Compiled kernels on disk, good for exactly one architecture, one compiler and one state of the sources.

What a file says of its code is JSON with the symbol of each kernel; a damaged one is compiled again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..code_file import read_code, write_code


@dataclass(frozen=True)
class Cubin:
    """Machine code, and under which symbol it has which kernel."""

    symbols: dict[str, str]
    code: bytes


def cache_root() -> Path:
    """Where compiled kernels lie, those of the CPU beside those of GPUs."""
    named = os.environ.get("HALFBYTE_KERNEL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("HALFBYTE_CACHE")
    if base:
        return Path(base) / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("halfbyte", appauthor=False)) / "kernels"


def write_cubin(path: Path, cubin: Cubin) -> None:
    """Store a file; raises `ResourceError` where the disk is full or the folder cannot be written."""
    write_code(path, json.dumps(cubin.symbols), cubin.code)


def read_cubin(path: Path) -> Cubin | None:
    """What a file holds, or None where there is no sound one."""
    found = read_code(path)
    return None if found is None else Cubin(json.loads(found[0]), found[1])
