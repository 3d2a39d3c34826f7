"""Compiled code on disk: a checksum, a line that says what it is, and the code.

A file is written to a temporary name and renamed, so a reader sees a whole one or none; a damaged one counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from .errors import ResourceError


def write_code(path: Path, about: str, code: bytes) -> None:
    """Store a file; raises `ResourceError` where the disk is full or the folder cannot be written."""
    body = about.encode() + b"\n" + code
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


def read_code(path: Path) -> tuple[str, bytes] | None:
    """The line and the code, or None where there is no sound file."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    about, _, code = body.partition(b"\n")
    return about.decode(), code
