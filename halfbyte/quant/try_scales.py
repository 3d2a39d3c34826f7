"""Scales of a format that has few of them: those next to the best one are tried on the weights themselves."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .block import Floats
from .encoder import Levels, Search
from .moments import moments


def least_error(x: Floats, w: Floats, scales: Iterable[Floats], levels: Levels, search: Search) -> NDArray[np.intp]:
    """i[G]: which of `scales` f32[G] leaves the least error in x, w f32[G, L]; the first of equals."""
    errors = []
    for scale in scales:
        sums = moments(x, w, search.codes(x, scale, None, levels), levels, 1)
        errors.append(sums.error(scale[:, None], np.zeros((1, 1)))[:, 0])
    best: NDArray[np.intp] = np.argmin(errors, axis=0)
    return best
