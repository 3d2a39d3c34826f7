"""`fit` of the formats whose scales are integers times one half a block; `superblock.py` makes the choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bits import half_bytes
from .block import Bytes, Floats
from .encoder import Fit, Grid, Levels, Search
from .half_scale import counted
from .superblock import Scaled, fit_affine, fit_scales

ROUNDS = 1
"""Times the choice is looked at again with the codes it led to."""


def fit_counted(
    name: str, levels: Levels, counts: Levels, groups: int, values: Floats, weights: Floats | None, search: Search
) -> Fit:
    """Scales alone. Fields: unit u8[n, 2], counts from `counts[0]` u8[n, groups]."""
    x, w = counted(values, weights, values.shape[1] // groups)
    with np.errstate(over="ignore", invalid="ignore"):
        best = fit_scales(x, w, levels, counts, groups, ROUNDS, search, name)
    return Fit(Grid(_turned(best.value), None, levels), (_unit(best, name), _bytes(best.count - np.float32(counts[0]))))


def fit_counted_affine(
    name: str, levels: Levels, counts: Levels, groups: int, values: Floats, weights: Floats | None, search: Search
) -> Fit:
    """Scales and minima. Fields: units of both u8[n, 2], then the counts of each u8[n, groups]."""
    x, w = counted(values, weights, values.shape[1] // groups)
    with np.errstate(over="ignore", invalid="ignore"):
        both = fit_affine(x, w, levels, counts, groups, ROUNDS, search, name)
    fields = *(_unit(part, name) for part in both), *(_bytes(part.count) for part in both)
    return Fit(Grid(_turned(both[0].value), _turned(-both[1].value), levels), fields)


def _turned(array: Floats) -> Floats:
    return np.ascontiguousarray(array.T)


def _bytes(count: Floats) -> Bytes:
    return _turned(count).astype(np.uint8)


def _unit(found: Scaled, name: str) -> NDArray[np.uint8]:
    return half_bytes(found.unit[:, None], name)
