"""Weights that are no numbers, looked for before they spoil a whole block without a word."""

from __future__ import annotations

import numpy as np

from .block import Floats


def first_unbounded(values: Floats) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity of f32[rows, M]; None where there is none."""
    finite = np.isfinite(values)
    if finite.all():
        return None
    row, column = np.argwhere(~finite)[0]
    return int(row), int(column)
