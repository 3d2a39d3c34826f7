"""`RowErrors`: rows of weights, what their codes have missed so far, and what that asks of the next block."""

from __future__ import annotations

import numpy as np

from ...quant.block import Floats
from .hessian import Hessian

_SPAN = 256
"""Columns looked ahead at a time: products with the few columns of a block would wait for memory."""


class RowErrors:
    """n rows of M columns, columns first: `weights` and `errors` f32[M, n]; `errors` are weights less coded values.

    The first `coded` columns have codes, the others no error yet.
    """

    def __init__(self, values: Floats, hessian: Hessian) -> None:
        self.weights: Floats = np.ascontiguousarray(values.T, np.float32)
        self.errors = np.zeros_like(self.weights)
        self.hessian = hessian
        self.coded = 0

    def values(self, block: slice) -> Floats:
        """f32[L, n]: what the block's columns were coded as."""
        return self.weights[block] - self.errors[block]

    def gain(self, block: slice, slope: Floats, values: Floats) -> Floats:
        """f32[n]: how much less rows cost with other `values` f32[L, n] in a block.

        `slope` f32[L, n] are the errors of all columns times H, half of what a change of the block's errors costs.
        """
        change = self.values(block) - values
        square = self.hessian.matrix[block, block] @ change
        square += 2 * slope
        square *= change
        gained: Floats = -square.sum(axis=0)
        return gained


class Ahead:
    """`matrix` f32[M, M] transposed times the errors of rows, for one block after the other from the left."""

    def __init__(self, rows: RowErrors, matrix: Floats) -> None:
        self._rows, self._matrix = rows, matrix
        self._span = slice(0, 0)
        self._products: Floats = np.empty((0, rows.weights.shape[1]), np.float32)

    def of(self, block: slice) -> Floats:
        """f32[L, n], to be read before the block is settled."""
        if block.start >= self._span.stop:
            self._span = slice(block.start, max(block.start + _SPAN, block.stop))
            coded = slice(0, self._rows.coded)
            self._products = self._matrix[coded, self._span].T @ self._rows.errors[coded]
        return self._products[block.start - self._span.start : block.stop - self._span.start]

    def settle(self, block: slice, values: Floats) -> None:
        """The block is coded as `values` f32[L, n]."""
        rows, later = self._rows, slice(block.stop, self._span.stop)
        errors = rows.weights[block] - values
        change = errors - rows.errors[block]
        rows.errors[block] = errors
        rows.coded = max(rows.coded, block.stop)
        self._products[block.stop - self._span.start :] += self._matrix[block, later].T @ change
