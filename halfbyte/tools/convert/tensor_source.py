"""`TensorSource`: named tensors of a checkpoint, wherever they lie and however they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray


@dataclass(frozen=True)
class SourceTensor:
    """`dtype` is one of `DTYPES`, `shape` row-major as in the checkpoint; `path` the file that has it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path


class TensorSource(Protocol):
    """`read` may be called from several threads at once, and reads no more than it is asked for.

    Raises `FormatError` with the file's name where bytes are missing or make no sense.
    """

    @property
    def tensors(self) -> Mapping[str, SourceTensor]:
        """All tensors by name."""

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension, as `DTYPES` says; all of them by default."""


DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "F8_E4M3": "u1",
    "F8_E5M2": "u1",
    "F8_E8M0": "u1",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "u1",
    "MXFP4": "u1",
}
"""What NumPy holds them as; bytes or words where it has no such type. Of MXFP4 the last dimension counts weights, an
array has the bytes of GGUF blocks instead, 17 for 32 weights.
"""
