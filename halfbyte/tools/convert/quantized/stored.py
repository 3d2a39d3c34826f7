"""`Stored`: the tensors of a quantized checkpoint as its files have them, checked when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ....quant.block import Floats
from ..tensor_source import SourceTensor, TensorSource
from .float8 import FLOAT8

FLOATS = ("F32", "F16", "BF16", "F64")
SCALES = (*FLOATS, *FLOAT8, "U8")
"""Types that a scale may have; a byte is a power of two."""


class Stored:
    """Raises `FormatError`, naming tensor and file, for what is missing or of the wrong type or shape."""

    def __init__(self, source: TensorSource) -> None:
        self._source = source
        self.tensors = source.tensors

    def stems(self, *endings: str) -> list[str]:
        """What names that end so begin with, each once, in the order of the files."""
        found = (name.removesuffix(ending) for name in self.tensors for ending in endings if name.endswith(ending))
        return list(dict.fromkeys(found))

    def want(self, stem: str, ending: str, dtypes: tuple[str, ...]) -> SourceTensor:
        """One of the tensors that begin with `stem`; some other one that does is there."""
        tensor = self.tensors.get(stem + ending)
        if tensor is None:
            other = next(self.tensors[name] for name in self.tensors if name.startswith((stem + ".", stem + "_")))
            raise FormatError(
                f"has {other.name!r}, but {stem + ending!r} that belongs to it is missing: fetch the checkpoint again",
                path=other.path,
            )
        if tensor.dtype not in dtypes:
            raise wrong(tensor, f"is of type {tensor.dtype}, not {' or '.join(dtypes)}")
        return tensor

    def read(self, tensor: SourceTensor, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        return self._source.read(tensor.name, start, stop)

    def floats(self, tensor: SourceTensor, start: int = 0, stop: int | None = None) -> Floats:
        """Scales, of any type that they may have."""
        data = self.read(tensor, start, stop)
        with np.errstate(over="ignore"):  # what is beyond float32 is refused below
            if tensor.dtype in FLOAT8 or tensor.dtype == "U8":
                values = FLOAT8["F8_E8M0" if tensor.dtype == "U8" else tensor.dtype].take(data)
            elif tensor.dtype == "BF16":
                values = (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
            else:
                values = data.astype(np.float32)
        if not np.isfinite(values).all():
            raise wrong(tensor, "holds scales that are not finite")
        return values


def wrong(tensor: SourceTensor, text: str) -> FormatError:
    """An error that says so of a tensor."""
    return FormatError(f"tensor {tensor.name!r} {text}: the checkpoint is damaged, fetch it again", path=tensor.path)


def check_shape(tensor: SourceTensor, shape: tuple[int, ...], why: str) -> None:
    """Raise `FormatError` for another shape than `why` asks for."""
    if tensor.shape != shape:
        raise wrong(tensor, f"has shape {list(tensor.shape)}, but {why} needs {list(shape)}")


def check_matrix(tensor: SourceTensor) -> tuple[int, int]:
    """Both sizes of a matrix that is not empty. Raises `FormatError` for anything else."""
    if len(tensor.shape) != 2 or min(tensor.shape) < 1:
        raise wrong(tensor, f"has shape {list(tensor.shape)}, which is no matrix")
    return tensor.shape[0], tensor.shape[1]
