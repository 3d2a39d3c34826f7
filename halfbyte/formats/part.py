"""`Part`: one GGUF file mapped into memory, read and proven."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .cursor import Cursor
from .descriptor import Descriptor
from .existing_file import cannot_open, open_existing
from .metadata import Metadata, read_metadata
from .tensor_info import TensorInfo, read_tensor_infos

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32
SMALLEST_ALIGNMENT = 8

_IMPOSTORS: dict[bytes, str] = {
    b"ggml": "a model of the older GGML kind; convert it with a current llama.cpp",
    b"lmgg": "a model of the older GGML kind; convert it with a current llama.cpp",
    b"fmgg": "a model of the older GGMF kind; convert it with a current llama.cpp",
    b"tjgg": "a model of the older GGJT kind; convert it with a current llama.cpp",
    b"FUGG": "a big-endian GGUF file; fetch or convert a little-endian one",
    b"version https://git-lfs": "a Git LFS pointer, not the model itself; fetch it with `git lfs pull`",
    b"<": "a web page, so the download went wrong; fetch it again",
    b"PK": "a zip archive (a PyTorch checkpoint, maybe); convert it to GGUF",
}


@dataclass(frozen=True)
class Part:
    """`data` u8[size] is a read-only view of the mapping; it and all views of it keep the mapping alive.

    `file` reads the same bytes; None on systems that cut no file that is mapped. `forget` lets go of the pages that
    were read; they come back when they are looked at.
    """

    path: Path
    version: int
    alignment: int
    metadata: Metadata
    tensors: dict[str, TensorInfo]
    data: NDArray[np.uint8]
    size_now: Callable[[], int]
    file: Descriptor | None
    forget: Callable[[], None]


def open_part(path: Path) -> Part:
    """Map one file and check everything in it that another part cannot change."""
    mapping, file = _map(path)
    data = np.frombuffer(mapping, np.uint8)
    cursor = Cursor(path, data)
    version = _read_version(cursor)
    n_tensors = cursor.u64("the number of tensors")
    n_keys = cursor.u64("the number of metadata keys")
    metadata = read_metadata(cursor, n_keys)
    alignment = _alignment(path, metadata)
    tensors = read_tensor_infos(cursor, n_tensors, alignment)
    return Part(path, version, alignment, metadata, tensors, data, mapping.size, file, partial(_forget, mapping))


def _map(path: Path) -> tuple[mmap.mmap, Descriptor | None]:
    with open_existing(path, ".gguf") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise FormatError("the file is empty: fetch it again", path=path)
        try:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return mapping, Descriptor(file) if hasattr(os, "preadv") else None
        except OSError as error:
            raise cannot_open(path, error) from error


def _forget(mapping: mmap.mmap) -> None:
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if advice is not None:
        mapping.madvise(advice)


def _read_version(cursor: Cursor) -> int:
    head = cursor.data[:64].tobytes()
    if head[:4] != MAGIC:
        what = next((text for start, text in _IMPOSTORS.items() if head.startswith(start)), None)
        found = f"this is {what}" if what else f"it starts with {head[:4]!r} instead of {MAGIC!r}"
        raise cursor.error(f"not a GGUF file: {found}")
    cursor.skip(len(MAGIC), "the magic")
    at = cursor.position
    version = cursor.u32("the version")
    if version in VERSIONS:
        return version
    if version and version & 0xFFFF == 0:
        raise cursor.error("a big-endian GGUF file cannot be read; fetch or convert a little-endian one", at)
    advice = "convert it with a current llama.cpp" if version == 1 else "it is damaged or newer than this version"
    raise cursor.error(f"GGUF version {version} cannot be read, only 2 and 3 can; {advice}", at)


def _alignment(path: Path, metadata: Metadata) -> int:
    """llama.cpp takes any power of two; the specification asks for multiples of 8, and kernels rely on 4."""
    value = metadata.values.get(ALIGNMENT_KEY, DEFAULT_ALIGNMENT)
    kind = metadata.types.get(ALIGNMENT_KEY, "u32")
    if kind != "u32" or not isinstance(value, int):
        raise FormatError(f"{ALIGNMENT_KEY} is not a single u32 but {kind}: the file is damaged", path=path)
    if value < SMALLEST_ALIGNMENT or value & (value - 1):
        raise FormatError(f"{ALIGNMENT_KEY} is {value}, not a power of two from 8 on: the file is damaged", path=path)
    return value
