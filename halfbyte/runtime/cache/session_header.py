"""`SessionHeader`: what stands before the pages of a session file.

    8   magic, with bytes that a transfer as text would change
    4   version
    4   crc32 of everything from here to the pages
    16  fingerprint
    48  page_bytes, num_pages, num_runs, num_tokens, about_bytes, 0: u64 each
        about: JSON, facts for people
        runs: i32[num_runs, 3], parent, number of tokens, number of pages
        tokens: i32[num_tokens], run by run
        checksums: u32[num_pages], crc32 of each page
        pages: u8[num_pages, page_bytes], run by run

All numbers are little-endian; the file ends with the last page.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, UnsupportedError

MAGIC = b"\x89hbkv\r\n\x1a"
VERSION = 1
_START = struct.Struct("<8sII16s6Q")
_SEALED_FROM = 16
MAX_BODY_BYTES = 1 << 27
"""Of a session with a terabyte of pages; keeps a hostile file from asking for all memory."""

About = Mapping[str, str | int]


class SavedRun(NamedTuple):
    """Tokens i32[n] that follow those of run `parent`, -1 for the beginning of a text, and how many pages hold them."""

    parent: int
    tokens: NDArray[np.int32]
    num_pages: int


@dataclass(frozen=True)
class SessionHeader:
    """`checksums` u32[num_pages] are those of the pages, which follow."""

    fingerprint: bytes
    page_bytes: int
    about: About
    runs: tuple[SavedRun, ...]
    checksums: NDArray[np.uint32]

    def encode(self) -> bytes:
        """The bytes before the first page."""
        about = json.dumps(dict(self.about)).encode()
        table = np.array([(run.parent, len(run.tokens), run.num_pages) for run in self.runs], "<i4").reshape(-1, 3)
        tokens = [run.tokens.astype("<i4").tobytes() for run in self.runs]
        body = b"".join((about, table.tobytes(), *tokens, self.checksums.astype("<u4").tobytes()))
        n_tokens = int(table[:, 1].sum(dtype=np.int64))
        counts = (self.page_bytes, len(self.checksums), len(table), n_tokens, len(about), 0)
        start = _START.pack(MAGIC, VERSION, 0, self.fingerprint, *counts)
        seal = crc32(body, crc32(start[_SEALED_FROM:]))
        return _START.pack(MAGIC, VERSION, seal, self.fingerprint, *counts) + body


def read_header(path: Path, size: int, read: Callable[[int, int], bytes]) -> SessionHeader:
    """Header of a file of `size` bytes; `read(at, n)` gives n of them, or fewer where it ends before.

    Raises `UnsupportedError` for a version we do not read, `FormatError` for what is no sound session, before anything
    is allocated for it. Whether the fingerprint is the right one is for the caller to judge.
    """
    start = read(0, _START.size)
    _check_kind(path, start)
    if len(start) < _START.size:
        raise _damage(path, f"it has {size} bytes, fewer than its header: it is cut short", size)
    _, _, seal, fingerprint, page_bytes, n_pages, n_runs, n_tokens, n_about, zero = _START.unpack(start)
    body_bytes = n_about + 12 * n_runs + 4 * n_tokens + 4 * n_pages
    whole = _START.size + body_bytes + n_pages * page_bytes
    if whole != size or body_bytes > MAX_BODY_BYTES:
        raise _damage(path, f"it has {size} bytes where its header promises {whole}: it is cut short or damaged", size)
    body = read(_START.size, body_bytes)
    if len(body) < body_bytes or crc32(body, crc32(start[_SEALED_FROM:])) != seal or zero:
        raise _damage(path, "its header does not match its checksum: it is damaged", _SEALED_FROM)
    about = _read_about(path, body[:n_about])
    numbers = np.frombuffer(body, "<i4", 3 * n_runs + n_tokens, n_about).astype(np.int32)
    checksums = np.frombuffer(body, "<u4", n_pages, body_bytes - 4 * n_pages).astype(np.uint32)
    runs = _read_runs(path, numbers[: 3 * n_runs].reshape(-1, 3).tolist(), numbers[3 * n_runs :], n_pages)
    return SessionHeader(fingerprint, page_bytes, about, runs, checksums)


def _check_kind(path: Path, start: bytes) -> None:
    found = start[: len(MAGIC)]
    if found != MAGIC:
        raise FormatError(f"it starts with {found!r} instead of {MAGIC!r}: it is no session", path=path, offset=0)
    version = int.from_bytes(start[8:12], "little")
    if version != VERSION and len(start) >= 12:
        raise UnsupportedError(
            f"{path}: a session of version {version}, which this halfbyte does not read; use the one that saved it",
            known=[str(VERSION)],
        )


def _read_about(path: Path, text: bytes) -> About:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or not all(isinstance(value, str | int) for value in about.values()):
        raise _damage(path, "its description makes no sense: it is damaged", _START.size)
    return about


def _read_runs(
    path: Path, table: Sequence[Sequence[int]], tokens: NDArray[np.int32], n_pages: int
) -> tuple[SavedRun, ...]:
    runs = []
    at = 0
    for index, (parent, count, pages) in enumerate(table):
        if not (-1 <= parent < index and 0 <= pages <= count > 0):
            raise _damage(path, f"its run {index} makes no sense: it is damaged", _START.size)
        runs.append(SavedRun(parent, tokens[at : at + count], pages))
        at += count
    if at != len(tokens) or sum(run.num_pages for run in runs) != n_pages or (len(tokens) and tokens.min() < 0):
        raise _damage(path, "its runs do not match their tokens and pages: it is damaged", _START.size)
    return tuple(runs)


def _damage(path: Path, what: str, offset: int) -> FormatError:
    return FormatError(f"{what}; save the session again", path=path, offset=offset)
