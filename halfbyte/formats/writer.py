"""`GGUFWriter`: a GGUF file written piece by piece."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, nearest
from ..quant.block import BlockFormat
from .closed_or_discarded import ClosedOrDiscarded
from .encode import encode_name, encode_numbers, encode_pair
from .gguf_file import GGUFFile
from .named_path import named_path
from .new_file import NewFile
from .part import ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, SMALLEST_ALIGNMENT, Part, open_part
from .tensor_info import MAX_DIMS, MAX_NAME_BYTES, MAX_SIZE
from .value_type import NUMBERS, Reserved, Typed

_VERSION = 3
_HEAD = struct.Struct("<4sIQQ")


@dataclass
class _Declared:
    raw_name: bytes
    format: BlockFormat
    shape: tuple[int, ...]
    n_bytes: int
    offset: int
    written: int = 0
    sum: int = 0


class GGUFWriter(ClosedOrDiscarded):
    """Declare all tensors, then write their bytes in any order and in pieces; nothing is kept in memory.

        with GGUFWriter("new.gguf", {"general.architecture": "llama"}) as writer:
            writer.declare("token_embd.weight", FORMATS["q8_0"], (576, 49152))
            writer.write("token_embd.weight", data)

    The file appears when the `with` block ends; leaving it by an exception leaves nothing behind. Metadata values are
    as `GGUFFile` gives them, lists, `Typed`, or `Reserved` for what depends on the tensors: `fill` takes it before the
    block ends, and `look` shows the tensors to whoever computes it. Raises `ConfigError` for what a GGUF file cannot
    hold and for tensors that are not complete, `ResourceError` where the disk is full.
    """

    def __init__(
        self, path: str | PathLike[str], metadata: Mapping[str, object], alignment: int = DEFAULT_ALIGNMENT
    ) -> None:
        if alignment < SMALLEST_ALIGNMENT or alignment & (alignment - 1) or alignment >= 1 << 32:
            raise ConfigError(f"alignment {alignment} is not a power of two from 8 to 2**31", key="alignment")
        self.path = named_path(path)
        self.alignment = alignment
        pairs = dict(metadata)
        given = pairs.pop(ALIGNMENT_KEY, alignment)
        if (given.value if isinstance(given, Typed) else given) != alignment:
            raise ConfigError(f"{ALIGNMENT_KEY} says {given!r}, the alignment is {alignment}", key=ALIGNMENT_KEY)
        if alignment != DEFAULT_ALIGNMENT:
            pairs[ALIGNMENT_KEY] = Typed(alignment, "u32")
        self._n_pairs = len(pairs)
        encoded = {key: encode_pair(key, value) for key, value in pairs.items()}
        self._pairs = b"".join(encoded.values())
        self._rooms = dict(_find_rooms(pairs, encoded))
        self._unfilled = set(self._rooms)
        self._tensors: dict[str, _Declared] = {}
        self._end = 0
        self._data_start = 0
        self._file: NewFile | None = None
        self._finished = self._committed = False

    def declare(self, name: str, format: BlockFormat, shape: Sequence[int]) -> None:
        """Promise a tensor; `shape` in GGUF order, the length of a row first."""
        if self._file is not None or self._finished:
            raise ConfigError(f"tensor {name!r} is declared too late: declare all of them before the first write")
        if name in self._tensors:
            raise ConfigError(f"tensor {name!r} is declared twice")
        dims = tuple(int(n) for n in shape)
        if not 0 < len(dims) <= MAX_DIMS or min(dims) < 1 or math.prod(dims) > MAX_SIZE:
            raise ConfigError(f"tensor {name!r} cannot have shape {list(dims)}: 1 to {MAX_DIMS} positive dimensions")
        if dims[0] % format.block_len:
            raise ConfigError(f"tensor {name!r}: rows of {dims[0]} do not divide into blocks of {format.block_len}")
        n_bytes = format.row_bytes(dims[0]) * math.prod(dims[1:])
        self._tensors[name] = _Declared(
            encode_name(name, "tensor name", MAX_NAME_BYTES), format, dims, n_bytes, self._end
        )
        self._end = self._padded(self._end + n_bytes)

    @property
    def file_bytes(self) -> int:
        """Size the file will have with the tensors declared so far."""
        return self._padded(len(self._header())) + self._end

    def write(self, name: str, data: bytes | NDArray[Any]) -> None:
        """Append the next bytes of a tensor; an array is taken as the bytes it consists of."""
        if self._finished:
            raise ConfigError(f"{self.path}: finished already, {name!r} cannot be written to")
        declared = self._tensors.get(name)
        if declared is None:
            raise ConfigError(f"tensor {name!r} was not declared{nearest(name, self._tensors)}")
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        left = declared.n_bytes - declared.written
        if len(raw) > left:
            raise ConfigError(f"tensor {name!r} lacks {left} of {declared.n_bytes} bytes, {len(raw)} were given")
        file = self._begin()
        file.write(self._data_start + declared.offset + declared.written, raw)
        declared.written += len(raw)
        declared.sum = zlib.crc32(raw, declared.sum)

    @property
    def sums(self) -> dict[str, int]:
        """CRC-32 of what was written of each tensor."""
        return {name: tensor.sum for name, tensor in self._tensors.items()}

    def look(self) -> GGUFFile:
        """The file as it will be, save what is reserved and not filled yet; all tensors must be complete.

        Close it, and let go of what it gave, before the file gets its name.
        """
        return GGUFFile([self.part()])

    def part(self) -> Part:
        """What `look` shows, as one part of a model that is split."""
        short = self._short()
        if self._finished or short:
            why = f"tensors are incomplete: {short}" if short else "it is finished"
            raise ConfigError(f"{self.path}: cannot be looked at, {why}")
        return replace(open_part(self._begin().settle()), path=self.path)

    def fill(self, key: str, values: Sequence[object] | NDArray[Any]) -> None:
        """Give a reserved array its values."""
        if self._finished or key not in self._rooms:
            why = "finished already" if self._finished else f"not reserved{nearest(key, self._rooms)}"
            raise ConfigError(f"{self.path}: {key!r} cannot be filled: {why}", key=key)
        offset, room = self._rooms[key]
        file = self._begin()
        file.write(_HEAD.size + offset, encode_numbers(key, values, room))
        self._unfilled.discard(key)

    @property
    def committed(self) -> bool:
        """Whether the file has its name."""
        return self._committed

    def close(self) -> None:
        """Check that all tensors are complete and give the file its name; may be called twice."""
        if self._finished:
            return
        short = self._short()
        if short or self._unfilled:
            self.discard()
            why = f"tensors are incomplete: {short}" if short else f"not filled: {', '.join(sorted(self._unfilled))}"
            raise ConfigError(f"{self.path}: not written, {why}")
        try:
            self._begin().commit()
        except BaseException:
            self.discard()
            raise
        self._finished = self._committed = True

    def discard(self) -> None:
        """Leave nothing behind; may be called twice."""
        if self._file is not None and not self._finished:
            self._file.discard()
        self._finished = True

    def _short(self) -> str:
        """Names of tensors that lack bytes."""
        short = [name for name, tensor in self._tensors.items() if tensor.written < tensor.n_bytes]
        return ", ".join(short[:8]) + (f" and {len(short) - 8} more" if len(short) > 8 else "")

    def _padded(self, n: int) -> int:
        return -(-n // self.alignment) * self.alignment

    def _header(self) -> bytes:
        infos = b"".join(_encode_info(tensor) for tensor in self._tensors.values())
        return _HEAD.pack(MAGIC, _VERSION, len(self._tensors), self._n_pairs) + self._pairs + infos

    def _begin(self) -> NewFile:
        if self._file is None:
            header = self._header()
            self._data_start = self._padded(len(header))
            self._file = NewFile(self.path, self._data_start + self._end)
            self._file.write(0, header)
        return self._file


def _find_rooms(
    pairs: Mapping[str, object], encoded: Mapping[str, bytes]
) -> Iterator[tuple[str, tuple[int, Reserved]]]:
    """Where among the encoded pairs the numbers of each reserved array are."""
    end = 0
    for key, raw in encoded.items():
        end += len(raw)
        room = pairs[key]
        if isinstance(room, Reserved):
            yield key, (end - room.count * NUMBERS[room.type].dtype.itemsize, room)


def _encode_info(tensor: _Declared) -> bytes:
    dims = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
    return tensor.raw_name + dims + struct.pack("<IQ", tensor.format.ggml_id, tensor.offset)
