"""Open a file that someone named, or say why it cannot be."""

from __future__ import annotations

import errno
import stat
from io import FileIO
from pathlib import Path

from ..errors import ConfigError, HalfbyteError, ResourceError


def open_existing(path: Path, suffix: str, key: str = "path") -> FileIO:
    """A regular file for reading, unbuffered; `suffix` is what such a file's name ends in.

    Raises `ConfigError` where there is none, `ResourceError` where the system gives no descriptor.
    """
    try:
        # Opening a pipe would wait for its writer, so look before opening.
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            what = f"a folder; name a {suffix} file in it" if stat.S_ISDIR(kind) else "not a regular file"
            raise ConfigError(f"{path}: is {what}", key=key)
        return path.open("rb", buffering=0)
    except OSError as error:
        raise cannot_open(path, error, key) from (None if isinstance(error, FileNotFoundError) else error)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r}: not a path: {error}", key=key) from None


def cannot_open(path: Path, error: OSError, key: str = "path") -> HalfbyteError:
    """The typed error for what the system refused."""
    if isinstance(error, FileNotFoundError):
        return ConfigError(f"{path}: no such file; check the path", key=key)
    if isinstance(error, PermissionError):
        return ConfigError(f"{path}: not allowed to read it; check its permissions", key=key)
    if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return ResourceError(f"{path}: cannot be opened: {error.strerror}")
    return ConfigError(f"{path}: cannot be opened: {error.strerror}", key=key)
