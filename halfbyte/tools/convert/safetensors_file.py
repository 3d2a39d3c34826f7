"""`SafetensorsFile`: tensors of one `.safetensors` file, read piece by piece."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ...errors import FormatError, UnsupportedError
from ...formats.descriptor import Descriptor
from .tensor_source import DTYPES, SourceTensor

_LENGTH = struct.Struct("<Q")


class SafetensorsFile:
    """A `TensorSource`. The library proves the header; bytes are read by position, as NumPy lacks some of the types.

    Raises `FormatError` for a file that is not sound or shorter than its header says.
    """

    def __init__(self, path: Path) -> None:
        header, start, self._descriptor = _open(path)
        self.tensors = {
            name: SourceTensor(name, str(entry["dtype"]), tuple(entry["shape"]), path) for name, entry in header.items()
        }
        self._places = {
            name: (start + entry["data_offsets"][0], start + entry["data_offsets"][1]) for name, entry in header.items()
        }

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        tensor = self.tensors[name]
        if tensor.dtype not in DTYPES:
            raise UnsupportedError(f"{tensor.path}: tensor {name!r} is of type {tensor.dtype}", known=DTYPES)
        dtype, (first, end) = np.dtype(DTYPES[tensor.dtype]), self._places[name]
        inner = tensor.shape[1:]
        if tensor.shape:
            stop = tensor.shape[0] if stop is None else stop
            size = math.prod(inner) * dtype.itemsize
            first, end, shape = first + start * size, first + stop * size, (stop - start, *inner)
        else:
            shape = ()
        data = self._descriptor.read(first, end)
        if len(data) < end - first:
            raise FormatError(f"has become shorter, tensor {name!r} is cut off: fetch it again", path=tensor.path)
        return data.view(dtype).reshape(shape)


def _open(path: Path) -> tuple[dict[str, Any], int, Descriptor]:
    try:
        with safe_open(path, framework="np"):
            pass  # which proves it
        with path.open("rb", buffering=0) as file:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            header = json.loads(file.read(length), object_pairs_hook=_once)
            descriptor = Descriptor(file)
    except SafetensorError as error:
        raise FormatError(f"is no sound safetensors file ({error}): fetch it again", path=path) from error
    except (OSError, ValueError, struct.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FormatError(f"cannot be read ({reason}): fetch it again", path=path) from error
    header.pop("__metadata__", None)
    return header, _LENGTH.size + length, descriptor


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are unique: of two tensors of one name readers would take different ones."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"two entries are named {name!r}")
        found[name] = value
    return found
