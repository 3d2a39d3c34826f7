"""Grids of formats that store places in them, as `kernels/file_grids.cuh` looks them up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..quant import grids

_IQ2, _IQ1 = (8, 25, 43), (-1, 0, 1)
_IQ3_XXS, _IQ3_S = (4, 12, 20, 28, 36, 44, 52, 62), (1, 3, 5, 7, 9, 11, 13, 15)

_GRIDS: dict[str, tuple[grids.Grid, tuple[int, ...]]] = {
    "iq2_xxs": (grids.IQ2_XXS, _IQ2),
    "iq2_xs": (grids.IQ2_XS, _IQ2),
    "iq2_s": (grids.IQ2_S, _IQ2),
    "iq3_xxs": (grids.IQ3_XXS, _IQ3_XXS),
    "iq3_s": (grids.IQ3_S, _IQ3_S),
    "iq1_s": (grids.IQ1, _IQ1),
    "iq1_m": (grids.IQ1, _IQ1),
}


def grid_table(format_name: str) -> NDArray[np.uint8] | None:
    """u8[rows, width]: which of the levels each weight has, by rising value; None for formats without a grid."""
    if format_name not in _GRIDS:
        return None
    grid, levels = _GRIDS[format_name]
    return np.searchsorted(levels, grid).astype(np.uint8)
