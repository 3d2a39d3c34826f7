"""`TorchFile`: tensors of one PyTorch `.bin` file, which is a pickle: only weights are ever taken out of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...errors import FormatError, UnsupportedError
from .tensor_source import SourceTensor

_DTYPES = {
    "torch.float64": "F64",
    "torch.float32": "F32",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.float8_e4m3fn": "F8_E4M3",
    "torch.float8_e5m2": "F8_E5M2",
    "torch.int64": "I64",
    "torch.int32": "I32",
    "torch.int16": "I16",
    "torch.int8": "I8",
    "torch.uint8": "U8",
    "torch.bool": "BOOL",
}


class TorchFile:
    """A `TensorSource` over a mapped file. Raises `UnsupportedError` without PyTorch, `FormatError` for code in it."""

    def __init__(self, path: Path) -> None:
        self._tensors = _load(path)
        self.tensors = {
            name: SourceTensor(name, _DTYPES.get(str(tensor.dtype), str(tensor.dtype)), tuple(tensor.shape), path)
            for name, tensor in self._tensors.items()
        }

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        import torch

        source = self.tensors[name]
        if source.dtype not in _DTYPES.values():
            raise UnsupportedError(f"{source.path}: tensor {name!r} is of type {source.dtype}", known=_DTYPES.values())
        tensor = self._tensors[name]
        part = (tensor[start:stop] if source.shape else tensor).contiguous()
        words = {"BF16": torch.uint16, "F8_E4M3": torch.uint8, "F8_E5M2": torch.uint8}.get(source.dtype)
        array: NDArray[Any] = (part if words is None else part.view(words)).numpy()
        return array


def _load(path: Path) -> dict[str, Any]:
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            f"{path}: is a PyTorch pickle, which only PyTorch reads: pip install torch, or take the safetensors files"
        ) from None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, OSError, KeyError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FormatError(
            f"cannot be read without running code that it holds, or is damaged ({reason:.200}): "
            "take the safetensors files",
            path=path,
        ) from error
    if not isinstance(loaded, dict) or not all(isinstance(t, torch.Tensor) for t in loaded.values()):
        raise FormatError("holds other things than named tensors: it is no checkpoint of weights", path=path)
    return {str(name): tensor.detach() for name, tensor in loaded.items()}
