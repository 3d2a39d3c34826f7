"""`MergedSource`: a checkpoint whose weights are changed by a LoRA adapter while they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, UnsupportedError
from .peft_adapter import Pair, PeftAdapter
from .tensor_source import SourceTensor, TensorSource
from .values import FLOATS, as_floats


def merged_source(source: TensorSource, adapter: Path, scale: float = 1.0) -> TensorSource:
    """`source` with `scale` times what the PEFT adapter in a folder adds; the weights it touches become float32.

    Nothing is computed before it is read, and then no more than the rows asked for. Raises one `FormatError` for all
    weights of the adapter that the checkpoint does not have or has in another shape, else what `PeftAdapter` raises.
    """
    return MergedSource(source, PeftAdapter(adapter), scale)


class MergedSource:
    """A `TensorSource` over another; see `merged_source`."""

    def __init__(self, source: TensorSource, adapter: PeftAdapter, scale: float) -> None:
        self._source, self._pairs, self._scale = source, adapter.pairs, scale
        adapter.check_copies(lambda: source)
        problems = [text for pair in adapter.pairs.values() for text in _problems(pair, source.tensors)]
        if problems:
            more = f" and {len(problems) - 8} more" if len(problems) > 8 else ""
            raise FormatError(f"does not fit the checkpoint: {'; '.join(problems[:8])}{more}", path=adapter.folder)
        touched = [source.tensors[name] for name in adapter.pairs]
        packed = [f"{tensor.name} ({tensor.dtype})" for tensor in touched if tensor.dtype not in FLOATS]
        if packed:
            raise UnsupportedError(f"{touched[0].path}: an adapter is merged into plain weights, not {packed[0]}")
        self.tensors: Mapping[str, SourceTensor] = dict(source.tensors) | {
            tensor.name: replace(tensor, dtype="F32") for tensor in touched
        }

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Entries `start` to `stop` - 1 of the first dimension."""
        data, pair = self._source.read(name, start, stop), self._pairs.get(name)
        if pair is None:
            return data
        base = as_floats(data, self._source.tensors[name].dtype)
        factor = np.float32(self._scale * pair.scaling)
        return base + (factor * pair.b[start:stop]) @ pair.a


def _problems(pair: Pair, tensors: Mapping[str, SourceTensor]) -> list[str]:
    tensor, wanted = tensors.get(pair.weight), (len(pair.b), pair.a.shape[1])
    if tensor is None:
        return [f"{pair.weight} is none of its tensors"]
    return [] if tensor.shape == wanted else [f"{pair.weight} is {list(tensor.shape)}, not {list(wanted)}"]
