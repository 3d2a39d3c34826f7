"""Compiled kernels on disk, good for exactly one architecture, one compiler and one state of the sources.

A file is a checksum, a line of JSON with the symbol of each kernel, and the machine code. It is written to a temporary
name and renamed, so a reader sees a whole one or none; a damaged one counts as absent and is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ResourceError


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
    body = json.dumps(cubin.symbols).encode() + b"\n" + cubin.code
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ResourceError(
            f"cannot keep a compiled kernel in {path.parent}: {error.strerror}; "
            "free some space or point HALFBYTE_KERNEL_CACHE to a folder that can be written"
        ) from error


def read_cubin(path: Path) -> Cubin | None:
    """What a file holds, or None where there is no sound one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    header, _, code = body.partition(b"\n")
    return Cubin(json.loads(header), code)
