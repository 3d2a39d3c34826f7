"""`JoinedSource`: the shards of a checkpoint as one source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ...errors import FormatError
from .tensor_source import SourceTensor, TensorSource


class JoinedSource:
    """A `TensorSource`. Raises `FormatError` for a tensor that two shards have."""

    def __init__(self, sources: Sequence[TensorSource]) -> None:
        self.tensors: dict[str, SourceTensor] = {}
        self._owner: dict[str, TensorSource] = {}
        for source in sources:
            for name, tensor in source.tensors.items():
                if name in self.tensors:
                    other = self.tensors[name].path.name
                    raise FormatError(f"has tensor {name!r}, as {other} does: which one counts?", path=tensor.path)
                self.tensors[name], self._owner[name] = tensor, source

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        return self._owner[name].read(name, start, stop)
