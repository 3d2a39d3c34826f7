"""`NewFile`: a file that appears under its name only when it is whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from ..errors import ConfigError, HalfbyteError, ResourceError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_place(path: Path, key: str = "path") -> None:
    """Raise `ConfigError` where no file can be made: no name, no folder, or what is there is no file.

    A device must be refused: whoever may rename in its folder would replace it for every program on the machine.
    """
    folder = path.absolute().parent
    try:
        if not path.name or path.is_dir():
            problem = "it is a folder: name a file in it"
        elif not folder.is_dir():
            problem = f"there is no folder {folder}: make it first"
        elif path.exists() and not path.is_file():
            problem = "it is a device or a pipe, which a file would replace: give another name"
        elif not os.access(folder, os.W_OK):
            problem = f"the folder {folder} takes no files: name another one"
        else:
            with contextlib.suppress(FileNotFoundError):
                path.lstat()  # which refuses names that can be none; the questions above answer no
            return
    except (OSError, ValueError) as error:  # a name too long, or with a NUL in it
        problem = f"{getattr(error, 'strerror', None) or error}: give another name"
    raise ConfigError(f"{path}: cannot be written: {problem}", key=key)


class NewFile:
    """`size` bytes under a temporary name in the folder of `path`; bytes never written are zero.

    Raises `ResourceError` with needed and free bytes where the disk is full, `ConfigError` where the folder cannot be
    written to and where `path` is no place for a file. Nothing stays of one that nobody holds any more: Ctrl-C may come
    before or inside whatever would discard it.
    """

    _owner = 0  # there is nothing to remove yet

    def __init__(self, path: Path, size: int) -> None:
        check_place(path)
        self.path = path
        self.size = size
        self._written = 0
        self._temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        self._owner = os.getpid()
        try:
            free = shutil.disk_usage(path.parent).free
            if free < size:
                raise self._full(free)
            self._file = self._temporary.open("xb")
        except OSError as error:
            raise self._explain(error) from error

    def write(self, offset: int, data: memoryview | bytes) -> None:
        """Put `data` at `offset`."""
        try:
            self._file.seek(offset)
            self._file.write(data)
        except OSError as error:
            raise self._explain(error) from error
        self._written += len(data)

    def settle(self) -> Path:
        """Give it its whole size, and where it can be read before it has its name."""
        try:
            self._file.truncate(self.size)
            self._file.flush()
        except OSError as error:
            raise self._explain(error) from error
        return self._temporary

    def commit(self) -> None:
        """Make it durable and give it its name, replacing what had it."""
        try:
            self._file.truncate(self.size)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self.path)
            self._owner = 0
        except OSError as error:
            raise self._explain(error) from error

    def discard(self) -> None:
        """Remove it; may be called twice."""
        # Closing flushes, which on a full disk fails once more; the bytes are not wanted any longer.
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)
        self._owner = 0

    def __del__(self) -> None:
        if self._owner == os.getpid():  # and not a fork, whose parent writes on
            self._temporary.unlink(missing_ok=True)

    def _full(self, free: int) -> ResourceError:
        needed = self.size - self._written
        text = f"{self.path}: the disk is full: {needed} bytes needed, {free} free; make room or write elsewhere"
        return ResourceError(text, needed=needed, free=free)

    def _explain(self, error: OSError) -> HalfbyteError:
        if error.errno in _FULL:
            return self._full(shutil.disk_usage(self.path.parent).free)
        return ConfigError(f"{self.path}: cannot be written: {error.strerror}; write elsewhere", key="path")
