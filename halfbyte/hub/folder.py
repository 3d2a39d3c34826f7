"""The folder that keeps fetched models."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import ResourceError


def cache_folder() -> Path:
    """Folder of everything that can be fetched or made again; `HALFBYTE_CACHE` moves it."""
    given = os.environ.get("HALFBYTE_CACHE")
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("halfbyte", appauthor=False))


def models_folder() -> Path:
    """Folder of the model files."""
    return cache_folder() / "models"


def folder_name(reference: str) -> str:
    """A file name for a reference: readable, and unique where file systems ignore case or forbid a character."""
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", reference):
        return reference
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", reference)[:64].strip("-.")
    return f"{readable}-{hashlib.sha256(reference.encode()).hexdigest()[:8]}"


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn a full or closed disk into `ResourceError`; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise ResourceError(
                f"cannot write to the model folder {folder} ({error.strerror}); "
                "set HALFBYTE_CACHE to a folder that you may write to"
            ) from error
        raise


def disk_full(folder: Path, needed: int | None = None) -> ResourceError:
    """The error for a disk with not enough room."""
    free = free_bytes(folder)
    amount = "" if needed is None else f"{needed / 1e6:.0f} MB are needed, "
    return ResourceError(
        f"the disk of {folder} is full: {amount}{free / 1e6:.0f} MB are free; "
        "make room, or set HALFBYTE_CACHE to a folder on another disk",
        needed=needed,
        free=free,
    )


def free_bytes(folder: Path) -> int:
    """Free bytes on the disk of `folder`, which need not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def require_room(folder: Path, needed: int) -> None:
    """Raise `ResourceError` before a long fetch that cannot end well."""
    if free_bytes(folder) < needed:
        raise disk_full(folder, needed)
