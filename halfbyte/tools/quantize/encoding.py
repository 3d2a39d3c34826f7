"""`Encoding`: how rows of a tensor become bytes of its new format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import ConfigError
from ...quant.block import Bytes, Floats
from ...quant.encode_rows import encode_rows
from ...quant.encoder import Search
from ...quant.search import NUMPY
from .plan import PlannedTensor


class Encoding(Protocol):
    """Called from several threads at once. Rows of a tensor must not depend on how they are cut into pieces."""

    def encode(self, tensor: PlannedTensor, expert: int, rows: Floats) -> Bytes:
        """u8[n, row_bytes] of f32[n, M], rows of one expert (0 for a plain matrix)."""


@dataclass(frozen=True)
class NearestCodes:
    """Scales by search, each weight at the nearest code. `importance` has f32[M] or f32[experts, M] by tensor name."""

    importance: Mapping[str, Floats] = field(default_factory=dict)
    search: Search = NUMPY

    def encode(self, tensor: PlannedTensor, expert: int, rows: Floats) -> Bytes:
        """As `Encoding` has it."""
        if tensor.target.encoder is None:
            return tensor.target.encode(rows)
        return encode_rows(tensor.target, rows, self._columns(tensor, expert), self.search)

    def _columns(self, tensor: PlannedTensor, expert: int) -> Floats | None:
        found = self.importance.get(tensor.name)
        if found is None:
            return None
        experts = found.reshape(-1, found.shape[-1])
        if experts.shape[1] != tensor.info.columns or (len(experts) > 1 and expert >= len(experts)):
            raise ConfigError(
                f"the importance matrix has {found.shape} for tensor {tensor.name!r} of shape {tensor.info.shape}: "
                "it was made from another model"
            )
        columns: Floats = experts[expert if len(experts) > 1 else 0]
        return columns
