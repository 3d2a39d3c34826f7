"""One page as a file of the disk cache: a header that says what it is and proves it, then the page.

    8   magic
    16  fingerprint of the model
    16  key of the page
    8   page_bytes: u64
    4   crc32 of all the rest: u32
    12  zero

Nothing is made durable: what a crash tears or leaves out does not match its checksum and counts as absent.
"""

from __future__ import annotations

import contextlib
import os
import struct
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .filling import fill

MAGIC = b"hbpage\x00\x01"
_FIELDS = struct.Struct("<8s16s16sQ")
_HEADER = struct.Struct(f"<{_FIELDS.size}sI12x")
HEADER_BYTES = _HEADER.size
TEMPORARY = ".tmp"


def write_page(path: str, fingerprint: bytes, key: bytes, page: NDArray[np.uint8]) -> None:
    """Let the page appear at `path`, whole and for its owner's eyes alone. Raises `OSError` and leaves nothing then."""
    fields = _FIELDS.pack(MAGIC, fingerprint, key, page.nbytes)
    temporary = f"{path}.{os.urandom(4).hex()}{TEMPORARY}"
    try:
        with open(temporary, "xb", opener=_private) as file:
            file.write(_HEADER.pack(fields, crc32(page.data, crc32(fields))))
            file.write(page.data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_page(path: str, fingerprint: bytes, key: bytes, out: NDArray[np.uint8]) -> bool:
    """Fill `out`; False where the file is not that page to the last byte. Raises `OSError`."""
    fields = _FIELDS.pack(MAGIC, fingerprint, key, out.nbytes)
    with open(path, "rb", buffering=0, opener=_unwaited) as file:
        header = file.read(HEADER_BYTES)
        whole = os.fstat(file.fileno()).st_size == HEADER_BYTES + out.nbytes
        if not whole or fill(file, HEADER_BYTES, out) < out.nbytes:
            return False
    return header == _HEADER.pack(fields, crc32(out.data, crc32(fields)))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _unwaited(path: str, flags: int) -> int:
    """A pipe of that name is read as empty instead of waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
