"""Sessions: conversations with the KV that was computed for them, as one file that outlives the process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from io import FileIO
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, FormatError
from ...formats.existing_file import open_existing
from ...formats.named_path import named_path
from ...formats.new_file import NewFile
from .filling import fill
from .session_header import About, SavedRun, SessionHeader, read_header

ReadPage = Callable[[int, NDArray[np.uint8]], None]
"""`read_page(index, out)` fills `out` u8[page_bytes] with a page; pages are counted run by run."""


def save(
    path: str | PathLike[str],
    fingerprint: bytes,
    runs: Sequence[SavedRun],
    read_page: ReadPage,
    *,
    page_bytes: int,
    about: About,
) -> None:
    """Write a session that appears under its name when it is whole and durable; pages pass through one at a time.

    `about` tells people what it belongs to (model, kv, isa); `load` compares it to say why a session does not fit.
    Raises `ResourceError` where the disk is full and `ConfigError` where `path` is no place for a file, and leaves
    nothing behind, whatever is raised.
    """
    n_pages = sum(run.num_pages for run in runs)
    checksums = np.zeros(n_pages, np.uint32)
    header = SessionHeader(fingerprint, page_bytes, about, tuple(runs), checksums)
    pages_at = len(header.encode())
    page = np.empty(page_bytes, np.uint8)
    file = NewFile(named_path(path), pages_at + n_pages * page_bytes)
    try:
        for index in range(n_pages):
            read_page(index, page)
            checksums[index] = crc32(page.data)
            file.write(pages_at + index * page_bytes, page.data)
        file.write(0, header.encode())
        file.commit()
    except BaseException:
        file.discard()
        raise


def load(path: str | PathLike[str], fingerprint: bytes, *, page_bytes: int, about: About) -> Session:
    """Open a session and prove it to the last byte; close it.

    Raises `ConfigError` (key `path`) where there is no such file and where it was saved with another model or other
    options, `UnsupportedError` for a version we do not read, `FormatError` for damage.
    """
    place = named_path(path)
    file = open_existing(place, "session")
    try:
        session = Session(place, file)
        session.check_origin(fingerprint, about)
        session.check_pages(page_bytes)
    except BaseException:
        file.close()
        raise
    return session


class Session:
    """A session file that is open; use `load`. Used by one thread."""

    def __init__(self, path: Path, file: FileIO) -> None:
        """Read and prove all but the pages."""
        size = os.fstat(file.fileno()).st_size
        self._path = path
        self._file = file
        self._header = read_header(path, size, self._read)
        self.runs = self._header.runs
        self.about = self._header.about
        self.num_pages = len(self._header.checksums)
        self._pages_at = size - self.num_pages * self._header.page_bytes

    def read_page(self, index: int, out: NDArray[np.uint8]) -> None:
        """Fill `out` u8[page_bytes]. Raises `FormatError` where the file has changed since it was proven."""
        at = self._pages_at + index * self._header.page_bytes
        if self._fill(at, out) < len(out) or crc32(out.data) != self._header.checksums[index]:
            raise FormatError(
                f"page {index} does not match its checksum: it is damaged; save the session again",
                path=self._path,
                offset=at,
            )

    def check_origin(self, fingerprint: bytes, about: About) -> None:
        """Raise `ConfigError` that says what differs where the session belongs to another model or other options."""
        if self._header.fingerprint == fingerprint:
            return
        keys = dict.fromkeys((*about, *self.about))
        differ = [key for key in keys if self.about.get(key) != about.get(key)]
        theirs = ", ".join(f"{key} {self.about.get(key)!r}" for key in differ) or "another file of the model"
        ours = f" where now it is {', '.join(f'{key} {about.get(key)!r}' for key in differ)}" if differ else ""
        raise ConfigError(
            f"{self._path}: this session was saved with {theirs}{ours}; load the model as it was then", key="path"
        )

    def check_pages(self, page_bytes: int) -> None:
        """Read all pages once. Raises `FormatError` for the first that is damaged."""
        if self._header.page_bytes != page_bytes:
            raise FormatError(
                f"the session has pages of {self._header.page_bytes} bytes, the model's have {page_bytes}",
                path=self._path,
            )
        page = np.empty(page_bytes, np.uint8)
        for index in range(self.num_pages):
            self.read_page(index, page)

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        self._file.close()

    def _read(self, at: int, n_bytes: int) -> bytes:
        data = np.empty(n_bytes, np.uint8)
        return data[: self._fill(at, data)].tobytes()

    def _fill(self, at: int, out: NDArray[np.uint8]) -> int:
        try:
            return fill(self._file, at, out)
        except OSError as error:
            raise FormatError(
                f"cannot be read: {error.strerror}; check the disk", path=self._path, offset=at
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
