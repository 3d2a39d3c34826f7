"""`Piece`: some rows of one matrix of a planned tensor, and how they are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .plan import PlannedTensor
from .tensor_source import TensorSource

PIECE = 2**21
"""Weights at a time: small enough that a few for each thread are nothing beside a tensor."""


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` - 1 of matrix `matrix`."""

    tensor: PlannedTensor
    matrix: int
    start: int
    stop: int

    @property
    def source_bytes(self) -> int:
        """About what it is of the checkpoint."""
        widths = {"F64": 8, "F32": 4, "MXFP4": 0.53}
        rows = self.stop - self.start
        return int(rows * self.tensor.shape.columns * widths.get(self.tensor.sources[0].dtype, 2))

    def stored(self, source: TensorSource) -> NDArray[Any]:
        """The rows as the checkpoint stores them, chosen and turned: [rows, columns], or [rows, bytes] of blocks."""
        rule, shape = self.tensor.rule, self.tensor.shape
        if self._whole:
            data = self._matrix(source)
            if rule.transposed:
                data = data.T
            data = data[self._rows]
        else:
            first, last = int(self._rows.min()), int(self._rows.max()) + 1
            data = source.read(self._name, first, last)
            data = data.reshape(last - first, -1)[self._rows - first]
        if rule.columns is not None:
            data = data[:, rule.columns(shape.source_columns)]
        return np.ascontiguousarray(data)

    def source_row(self, row: int) -> int:
        """Where one of its rows stands in the checkpoint."""
        return int(self._rows[row])

    @property
    def _whole(self) -> bool:
        """Whether the whole matrix is read for it: one of several in a tensor, or one that lies the other way."""
        return self._inside or self.tensor.rule.transposed

    @property
    def _inside(self) -> bool:
        return not self.tensor.rule.stacked and self.tensor.shape.matrices > 1

    @property
    def _name(self) -> str:
        return self.tensor.sources[self.matrix if self.tensor.rule.stacked else 0].name

    def _matrix(self, source: TensorSource) -> NDArray[Any]:
        if self._inside:
            matrix: NDArray[Any] = source.read(self._name, self.matrix, self.matrix + 1)[0]
            return matrix
        data = source.read(self._name)
        return data.reshape(data.shape[0] if data.ndim else 1, -1) if data.ndim != 2 else data

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        choice = self.tensor.rule.rows
        if choice is None:
            return np.arange(self.start, self.stop)
        return choice(self.tensor.shape.source_rows)[self.start : self.stop]


def pieces_of(tensor: PlannedTensor) -> Iterator[Piece]:
    """In the order in which the file has them; the same whoever computes them."""
    shape = tensor.shape
    whole = tensor.rule.transposed or (not tensor.rule.stacked and shape.matrices > 1)
    step = shape.rows if whole else max(1, PIECE // shape.columns)
    for matrix in range(shape.matrices):
        for start in range(0, shape.rows, step):
            yield Piece(tensor, matrix, start, min(start + step, shape.rows))
