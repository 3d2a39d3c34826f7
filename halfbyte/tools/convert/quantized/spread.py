"""`Spread`: which of a row's scales serves which of its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....quant.block import Floats


@dataclass(frozen=True)
class Spread:
    """`group` neighbours share one, the last may have fewer; or `of_column` says for each column which."""

    group: int
    of_column: NDArray[np.intp] | None = None

    def apply(self, ufunc: np.ufunc, values: Floats, operand: Floats) -> None:
        """`values` f32[n, M] become `ufunc(values, operand)`, of `operand` f32[n, groups]."""
        if self.of_column is not None:
            ufunc(values, operand.take(self.of_column, axis=1), out=values)
            return
        n, columns = values.shape
        whole = columns // self.group
        if whole:
            grouped = values[:, : whole * self.group].reshape(n, whole, self.group)
            ufunc(grouped, operand[:, :whole, None], out=grouped)
        if whole * self.group < columns:
            rest = values[:, whole * self.group :]
            ufunc(rest, operand[:, whole : whole + 1], out=rest)
