"""Scales of a format that has few of them: those next to the best one are tried on the weights themselves."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .block import Floats
from .encoder import Levels, Search


def least_error(x: Floats, w: Floats, scales: Iterable[Floats], levels: Levels, search: Search) -> NDArray[np.intp]:
    """i[G]: which of `scales` f32[G] leaves the least error in x, w f32[G, L]; the first of equals."""
    errors = [search.moments(x, w, scale, None, levels)[5] for scale in scales]
    best: NDArray[np.intp] = np.argmin(errors, axis=0)
    return best
