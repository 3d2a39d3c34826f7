"""`fit` of the formats whose scales are integers times one half a block; `superblock.py` makes the choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .block import Floats
from .encoder import Fit, Grid, Levels, Search
from .half_scale import counted
from .superblock import fit_affine, fit_scales

ROUNDS = 2
"""Times the choice is looked at again with the codes it led to."""


def scale_fit(name: str, levels: Levels, counts: Levels, groups: int) -> Callable[[Floats, Floats | None, Search], Fit]:
    """Fields: unit u8[n, 2], counts from `counts[0]` u8[n, groups]."""

    def fit(values: Floats, weights: Floats | None, search: Search) -> Fit:
        x, w = counted(values, weights, values.shape[1] // groups)
        best = fit_scales(x, w, levels, counts, groups, ROUNDS, search, name)
        return Fit(Grid(best.value, None, levels), (best.field, (best.count - counts[0]).astype(np.uint8)))

    return fit


def affine_fit(name: str, bits: int, count_bits: int, groups: int) -> Callable[[Floats, Floats | None, Search], Fit]:
    """Fields: units of scales and of minima u8[n, 2], then the counts of each u8[n, groups]."""
    levels, counts = np.arange(2**bits, dtype=np.int16), np.arange(2**count_bits, dtype=np.int16)

    def fit(values: Floats, weights: Floats | None, search: Search) -> Fit:
        x, w = counted(values, weights, values.shape[1] // groups)
        scales, minima = fit_affine(x, w, levels, counts, groups, ROUNDS, search, name)
        fields = scales.field, minima.field, scales.count.astype(np.uint8), minima.count.astype(np.uint8)
        return Fit(Grid(scales.value, -minima.value, levels), fields)

    return fit
