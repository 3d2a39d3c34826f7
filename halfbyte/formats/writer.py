"""`GGUFWriter`: a GGUF file written piece by piece."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, nearest
from ..quant.block import BlockFormat
from .encode import encode_name, encode_pair
from .named_path import named_path
from .new_file import NewFile
from .part import ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, SMALLEST_ALIGNMENT
from .tensor_info import MAX_DIMS, MAX_NAME_BYTES, MAX_SIZE
from .value_type import Typed

_VERSION = 3


@dataclass
class _Declared:
    raw_name: bytes
    format: BlockFormat
    shape: tuple[int, ...]
    n_bytes: int
    offset: int
    written: int = 0


class GGUFWriter:
    """Declare all tensors, then write their bytes in any order and in pieces; nothing is kept in memory.

        with GGUFWriter("new.gguf", {"general.architecture": "llama"}) as writer:
            writer.declare("token_embd.weight", FORMATS["q8_0"], (576, 49152))
            writer.write("token_embd.weight", data)

    The file appears when the `with` block ends; leaving it by an exception leaves nothing behind. Metadata values are
    as `GGUFFile` gives them, lists, or `Typed`. Raises `ConfigError` for what a GGUF file cannot hold and for tensors
    that are not complete, `ResourceError` where the disk is full.
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
        self._pairs = b"".join(encode_pair(key, value) for key, value in pairs.items())
        self._tensors: dict[str, _Declared] = {}
        self._end = 0
        self._data_start = 0
        self._file: NewFile | None = None
        self._finished = False

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

    def close(self) -> None:
        """Check that all tensors are complete and give the file its name; may be called twice."""
        if self._finished:
            return
        short = [name for name, tensor in self._tensors.items() if tensor.written < tensor.n_bytes]
        if short:
            self.discard()
            more = f" and {len(short) - 8} more" if len(short) > 8 else ""
            raise ConfigError(f"{self.path}: not written, tensors are incomplete: {', '.join(short[:8])}{more}")
        try:
            self._begin().commit()
        except BaseException:
            self.discard()
            raise
        self._finished = True

    def discard(self) -> None:
        """Leave nothing behind; may be called twice."""
        if self._file is not None and not self._finished:
            self._file.discard()
        self._finished = True

    def _padded(self, n: int) -> int:
        return -(-n // self.alignment) * self.alignment

    def _header(self) -> bytes:
        infos = b"".join(_encode_info(tensor) for tensor in self._tensors.values())
        return MAGIC + struct.pack("<IQQ", _VERSION, len(self._tensors), self._n_pairs) + self._pairs + infos

    def _begin(self) -> NewFile:
        if self._file is None:
            header = self._header()
            self._data_start = self._padded(len(header))
            self._file = NewFile(self.path, self._data_start + self._end)
            self._file.write(0, header)
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _encode_info(tensor: _Declared) -> bytes:
    dims = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
    return tensor.raw_name + dims + struct.pack("<IQ", tensor.format.ggml_id, tensor.offset)
