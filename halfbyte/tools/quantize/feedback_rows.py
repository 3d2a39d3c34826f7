"""`RowErrors`: rows of weights, what their codes have missed so far, and what that asks of the next block."""

from __future__ import annotations

import numpy as np

from ...quant.block import Floats
from .hessian import Hessian


class RowErrors:
    """n rows of M columns, columns first: `weights` and `errors` f32[M, n]; `errors` are weights less coded values.

    Columns not yet coded have no error.
    """

    def __init__(self, values: Floats, hessian: Hessian) -> None:
        self.weights: Floats = np.ascontiguousarray(values.T, np.float32)
        self.errors = np.zeros_like(self.weights)
        self.hessian = hessian

    def values(self, block: slice) -> Floats:
        """f32[L, n]: what the block's columns were coded as."""
        return self.weights[block] - self.errors[block]

    def settle(self, block: slice, values: Floats) -> None:
        """The block is coded as `values` f32[L, n]."""
        np.subtract(self.weights[block], values, out=self.errors[block])

    def left_over(self, block: slice) -> Floats:
        """f32[L, n]: the block's weights and what the errors of all columns before ask for."""
        forward = self.hessian.forward[: block.start, block]
        return self.weights[block] + forward.T @ self.errors[: block.start]

    def slope(self, block: slice) -> Floats:
        """f32[L, n]: errors of all columns times H, the half of what a change of the block's errors costs."""
        return self.hessian.matrix[:, block].T @ self.errors

    def gain(self, block: slice, slope: Floats, values: Floats) -> Floats:
        """f32[n]: how much less rows cost with other `values` f32[L, n] in a block whose slope is known."""
        change = self.values(block) - values
        square = self.hessian.matrix[block, block] @ change
        square += 2 * slope
        square *= change
        gained: Floats = -square.sum(axis=0)
        return gained
