"""Scales in half precision of blocks that are one group: the fit of the formats that have no more than that."""

from __future__ import annotations

import numpy as np

from .bits import half, half_bytes
from .block import Floats
from .encoder import Fit, Grid, Levels, Search


def counted(values: Floats, weights: Floats | None, length: int) -> tuple[Floats, Floats]:
    """f32[G, length] each: the weights of all groups and how much their errors count."""
    x = values.reshape(-1, length)
    return x, np.ones_like(x) if weights is None else weights.reshape(-1, length)


def fit_scale(name: str, levels: Levels, values: Floats, weights: Floats | None, search: Search) -> Fit:
    """One scale a block."""
    x, w = counted(values, weights, values.shape[1])
    field = half_bytes(search.scale(x, w, levels)[:, None], name)
    return Fit(Grid(half(field, 0), None, levels), (field,))


def fit_affine(name: str, levels: Levels, values: Floats, weights: Floats | None, search: Search) -> Fit:
    """One scale and one offset of either sign a block; `levels` count from 0."""
    x, w = counted(values, weights, values.shape[1])
    scale, offset = search.affine(x, w, len(levels) - 1, np.inf)
    fields = half_bytes(scale[:, None], name), half_bytes(offset[:, None], name)
    return Fit(Grid(half(fields[0], 0), half(fields[1], 0), levels), fields)
