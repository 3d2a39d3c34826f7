"""`SplitWriter`: a model written into one file, or into several of limited size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..errors import ConfigError
from ..quant.block import BlockFormat
from .closed_or_discarded import ClosedOrDiscarded
from .gguf_file import GGUFFile
from .named_path import named_path
from .split import ARCHITECTURE, COUNT, NO, TENSORS
from .value_type import Typed
from .writer import GGUFWriter

MOST_PARTS = 99999


class SplitWriter(ClosedOrDiscarded):
    """As `GGUFWriter`, into parts of at most `part_bytes` of tensors each, None for one file.

    A tensor is never cut, so one larger than a part makes a larger part. The parts of `PREFIX.gguf` are named as others
    look for them, `PREFIX-00001-of-00003.gguf`; all metadata are in the first. Names appear once all parts are whole.
    """

    def __init__(
        self, path: str | PathLike[str], metadata: Mapping[str, object], part_bytes: int | None = None
    ) -> None:
        if part_bytes is not None and part_bytes < 1:
            raise ConfigError(f"parts of {part_bytes} bytes hold nothing", key="split_size")
        self.path = named_path(path)
        self._metadata, self._part_bytes = dict(metadata), part_bytes
        self._declared: dict[str, tuple[BlockFormat, tuple[int, ...]]] = {}
        self._writers: list[GGUFWriter] = []
        self._part_of: dict[str, GGUFWriter] = {}

    def declare(self, name: str, format: BlockFormat, shape: Sequence[int]) -> None:
        """Promise a tensor; `shape` in GGUF order."""
        if self._writers:
            raise ConfigError(f"tensor {name!r} is declared too late: declare all of them before the first write")
        if name in self._declared:
            raise ConfigError(f"tensor {name!r} is declared twice")
        self._declared[name] = (format, tuple(shape))

    @property
    def paths(self) -> list[Path]:
        """Of the files, in order."""
        return [writer.path for writer in self._begin()]

    @property
    def file_bytes(self) -> int:
        """Of all files together."""
        return sum(writer.file_bytes for writer in self._begin())

    def write(self, name: str, data: bytes | NDArray[Any]) -> None:
        """Append the next bytes of a tensor."""
        self._begin()
        self._part_of.get(name, self._writers[0]).write(name, data)

    @property
    def sums(self) -> dict[str, int]:
        """CRC-32 of what was written of each tensor."""
        return {name: value for writer in self._begin() for name, value in writer.sums.items()}

    def fill(self, key: str, values: Sequence[object] | NDArray[Any]) -> None:
        """Give a reserved array its values."""
        self._begin()[0].fill(key, values)

    def look(self) -> GGUFFile:
        """The model as it will be; see `GGUFWriter.look`."""
        return GGUFFile([writer.part() for writer in self._begin()])

    def close(self) -> None:
        """Give all files their names, the first one last, so that nobody finds a model without its other parts."""
        try:
            for writer in reversed(self._begin()):
                writer.close()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave nothing behind, nor parts that were whole already."""
        for writer in self._writers:
            if writer.committed:
                writer.path.unlink(missing_ok=True)
            writer.discard()

    def _begin(self) -> list[GGUFWriter]:
        if not self._writers:
            groups = self._groups()
            self._writers = [self._writer(no, len(groups)) for no in range(len(groups))]
            for writer, names in zip(self._writers, groups, strict=True):
                for name in names:
                    writer.declare(name, *self._declared[name])
                    self._part_of[name] = writer
        return self._writers

    def _groups(self) -> list[list[str]]:
        groups: list[list[str]] = [[]]
        size = 0
        for name, (format, shape) in self._declared.items():
            n_bytes = format.row_bytes(shape[0])
            for n in shape[1:]:
                n_bytes *= n
            if self._part_bytes is not None and groups[-1] and size + n_bytes > self._part_bytes:
                groups.append([])
                size = 0
            groups[-1].append(name)
            size += n_bytes
        if len(groups) > MOST_PARTS:
            raise ConfigError(f"{len(groups)} parts are more than {MOST_PARTS}: make them larger", key="split_size")
        return groups

    def _writer(self, no: int, count: int) -> GGUFWriter:
        if count == 1:
            return GGUFWriter(self.path, self._metadata)
        about = {
            NO: Typed(no, "u16"),
            COUNT: Typed(count, "u16"),
            TENSORS: Typed(len(self._declared), "i32"),
        }
        arch = self._metadata.get(ARCHITECTURE)
        pairs = self._metadata if no == 0 else {} if arch is None else {ARCHITECTURE: arch}
        stem = self.path.name.removesuffix(".gguf")
        return GGUFWriter(self.path.with_name(f"{stem}-{no + 1:05d}-of-{count:05d}.gguf"), {**pairs, **about})
