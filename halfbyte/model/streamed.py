"""`multiply`: a product with a weight that is decoded a few rows at a time, and never whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .backend import Weight

Floats = NDArray[np.float32]

CHUNK = 2**18
"""Numbers decoded at a time. With what decoding them takes they stay in a core's cache: larger is slower."""


def multiply(x: Floats, weight: Weight, rows: slice = slice(None)) -> Floats:
    """`x @ weight[rows].T`, f32[T, N]; `rows` are neighbours."""
    start, stop, _ = rows.indices(weight.shape[0])
    out = np.empty((len(x), stop - start), np.float32)
    step = max(1, CHUNK // weight.shape[1])
    for first in range(start, stop, step):
        last = min(first + step, stop)
        out[:, first - start : last - start] = x @ weight.format.decode(weight.data[first:last]).T
    return out
