"""What tells whether tensors are those they were: how they are stored, and a sum over the bytes of each."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from ...formats import GGUFFile
from ...model.backend import Progress

PIECE = 2**22
"""Bytes read at a time."""


def layout(file: GGUFFile) -> int:
    """CRC-32 of names, formats and shapes of all tensors, in whatever order and parts they are."""
    lines = sorted(f"{name} {info.format.name} {info.shape}" for name, info in file.tensors.items())
    return zlib.crc32("\n".join(lines).encode())


def tensor_sums(file: GGUFFile, progress: Progress | None = None) -> NDArray[np.uint32]:
    """CRC-32 of the bytes of each tensor, in alphabetical order; `progress("verify", ...)` counts bytes."""
    sums, done = [], 0
    total = sum(info.n_bytes for info in file.tensors.values())
    for name in sorted(file.tensors):
        info = file.tensors[name]
        step = max(1, PIECE // (info.n_bytes // info.rows))
        value = 0
        for start in range(0, info.rows, step):
            value = zlib.crc32(file.read_rows(name, start, min(start + step, info.rows)).data, value)
        sums.append(value)
        done += info.n_bytes
        if progress is not None:
            progress("verify", done, total)
    return np.array(sums, np.uint32)
