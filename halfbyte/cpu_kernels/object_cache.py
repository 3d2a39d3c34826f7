"""Object code of kernels on disk, good for exactly one CPU, one compiler and one state of the sources.

A file is a checksum, the entry point's symbol and the object code. It is written to a temporary name and renamed, so a
reader sees a whole one or none; a damaged one counts as absent and is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from .._version import __version__
from ..errors import ResourceError
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


def write_object(path: Path, symbol: str, code: bytes) -> None:
    """Store one kernel; raises `ResourceError` where the disk is full or the folder cannot be written."""
    body = symbol.encode() + b"\n" + code
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


def read_object(path: Path) -> tuple[str, bytes] | None:
    """Symbol and object code, or None where there is no sound file."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    symbol, _, code = body.partition(b"\n")
    return symbol.decode(), code
