"""`RowEncoder`: how rows of a tensor become bytes of its new format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...quant.block import Bytes, Floats
from ...quant.encode_rows import encode_rows
from ...quant.encoder import Search
from ...quant.search import NUMPY
from .feedback import Feedback
from .hessian import Hessian
from .imatrix import ImportanceMatrix
from .plan import PlannedTensor


class RowEncoder(Protocol):
    """Called from several threads at once. Rows of a tensor must not depend on how they are cut into pieces."""

    def encode(self, tensor: PlannedTensor, expert: int, rows: Floats) -> Bytes:
        """u8[n, row_bytes] of f32[n, M], rows of one expert (0 for a plain matrix)."""


@dataclass(frozen=True)
class NearestCodes:
    """Scales by search, each weight at the nearest code; with an importance matrix, errors where it says count more."""

    matrix: ImportanceMatrix | None = None
    search: Search = NUMPY

    def encode(self, tensor: PlannedTensor, expert: int, rows: Floats) -> Bytes:
        """As `RowEncoder` has it."""
        if tensor.target.encoder is None:
            return tensor.target.encode(rows)
        return encode_rows(tensor.target, rows, self._columns(tensor, expert), self.search)

    def _columns(self, tensor: PlannedTensor, expert: int) -> Floats | None:
        if self.matrix is None or tensor.name not in self.matrix:
            return None
        experts = self.matrix.importance(tensor.name, tensor.info.columns)
        columns: Floats = experts[expert if len(experts) > 1 else 0]
        return columns


@dataclass(frozen=True)
class FeedbackCodes:
    """Columns make up for what others miss, as `hessian` of the tensor's inputs says what that costs."""

    feedback: Feedback
    hessian: Hessian

    def encode(self, tensor: PlannedTensor, expert: int, rows: Floats) -> Bytes:
        """As `RowEncoder` has it."""
        if tensor.target.encoder is None:
            return tensor.target.encode(rows)
        return self.feedback.encode(tensor.target, rows, self.hessian)
