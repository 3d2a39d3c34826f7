"""`scaled_rows`: stored numbers less their zeros, times their scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....quant.block import Floats
from .spread import Spread

_PIECE = 2**17
"""Weights that fit a cache with all that is made of them."""


def scaled_rows(
    codes: Callable[[int, int], NDArray[Any]],
    columns: int,
    scales: Floats,
    spread: Spread,
    zeros: Floats | None = None,
) -> Floats:
    """f32[n, columns] for f32[n, groups] of `scales` and `zeros`; `codes(start, stop)` are numbers of some of the rows.

    The difference of integers is exact, the product rounded once.
    """
    values = np.empty((len(scales), columns), np.float32)
    for start, stop in _pieces(len(scales), columns):
        piece = values[start:stop]
        piece[...] = codes(start, stop)
        if zeros is not None:
            spread.apply(np.subtract, piece, zeros[start:stop])
        with np.errstate(over="ignore"):  # infinities are refused where they are written
            spread.apply(np.multiply, piece, scales[start:stop])
    return values


def _pieces(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    # A multiple of 8: some formats pack so many rows into a word.
    step = max(8, _PIECE // columns // 8 * 8)
    return ((start, min(start + step, rows)) for start in range(0, rows, step))
