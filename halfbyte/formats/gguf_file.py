"""`GGUFFile`: one model on disk, in one file or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, FormatError, nearest
from .named_path import named_path
from .part import Part, open_part
from .split import gather, split_count
from .tensor_info import TensorInfo


class GGUFFile:
    """Metadata, tensor infos and mapped bytes, all proven when it was opened.

    A metadata value is int, float, bool, str, a read-only NumPy array or a `StringArray`; `types` has the name of its
    value type (of its elements, for an array), so `Typed(file.metadata[key], file.types[key])` writes back what was
    read. Metadata, `version` and `alignment` of a split model are those of its first part.
    """

    def __init__(self, parts: list[Part]) -> None:
        """Join proven parts, in order; use `open_gguf`."""
        first = parts[0]
        self.path: Path = first.path
        self.parts: tuple[Path, ...] = tuple(part.path for part in parts)
        self.version = first.version
        self.alignment = first.alignment
        self.metadata: Mapping[str, object] = MappingProxyType(first.metadata.values)
        self.types: Mapping[str, str] = MappingProxyType(first.metadata.types)
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(
            {
                name: dataclasses.replace(info, part=i) if i else info
                for i, part in enumerate(parts)
                for name, info in part.tensors.items()
            }
        )
        self._parts: tuple[Part, ...] = tuple(parts)

    def tensor_data(self, name: str) -> NDArray[np.uint8]:
        """u8[rows, row_bytes], a read-only view of the mapped file, valid as long as someone holds it.

        Raises `FormatError` for a tensor the file does not have, and where the file has been cut since it was opened:
        touching pages that are gone would kill the process.
        """
        part, info = self._locate(name)
        return part.data[info.offset : info.offset + info.n_bytes].reshape(info.rows, -1)

    def read_rows(self, name: str, start: int, stop: int) -> NDArray[np.uint8]:
        """u8[n, row_bytes], a copy, for work so long that the file may be cut meanwhile.

        Raises what `tensor_data` does, and never touches a page that is gone.
        """
        part, info = self._locate(name)
        if part.file is None:
            return self.tensor_data(name)[start:stop].copy()
        row_bytes = info.n_bytes // info.rows
        first, end = info.offset + start * row_bytes, info.offset + stop * row_bytes
        data = part.file.read(first, end)
        if len(data) < end - first:
            raise _cut(part)
        return data.reshape(stop - start, row_bytes)

    def _locate(self, name: str) -> tuple[Part, TensorInfo]:
        if not self._parts:
            raise ConfigError(f"{self.path}: closed, open it again to read {name!r}")
        info = self.tensors.get(name)
        if info is None:
            raise FormatError(f"has no tensor {name!r}{nearest(name, self.tensors)}", path=self.path)
        part = self._parts[info.part]
        _check_whole((part,))
        return part, info

    def whole(self) -> Callable[[], None]:
        """A check that raises `FormatError` once a part is shorter than it was; it works after `close` too."""
        return partial(_check_whole, self._parts)

    def forget(self) -> None:
        """Let go of the mapping's pages, which count as this process's memory; they come back when looked at."""
        for part in self._parts:
            part.forget()

    def close(self) -> None:
        """Let go of the mapping, which ends when the last view of it goes; may be called twice."""
        self._parts = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"GGUFFile({str(self.path)!r}, {len(self.tensors)} tensors, {len(self.metadata)} metadata keys)"


def open_gguf(path: str | PathLike[str]) -> GGUFFile:
    """Map a model and prove it: every count, length, offset, size and name, before anything is allocated for it.

    Any part of a split model stands for the whole. Raises `ConfigError` where there is no such file to read,
    `FormatError` where it is not sound, `UnsupportedError` for a tensor type we do not know.
    """
    part = open_part(named_path(path))
    return GGUFFile(gather(part) if split_count(part) > 1 else [part])


def _check_whole(parts: tuple[Part, ...]) -> None:
    for part in parts:
        if part.size_now() < len(part.data):
            raise _cut(part)


def _cut(part: Part) -> FormatError:
    return FormatError("the file has become shorter since it was opened: fetch it again", path=part.path)
