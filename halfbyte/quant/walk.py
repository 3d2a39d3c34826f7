"""`Walk`: codes of a block one column after the other, each from what the columns before it left over."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .block import Bytes, Floats
from .candidates import boundaries, consecutive
from .encoder import Grid, Levels


class Walk(Protocol):
    """Columns of a block for n rows at once, in `walk.py` by NumPy or compiled; all give the same bits.

    Shapes: columns come first, so that rows lie side by side.
    """

    def codes(self, targets: Floats, anchors: Floats, forward: Floats, grid: Grid) -> tuple[Bytes, Floats]:
        """u8[L, n] codes and f32[L, n] their values, column by column the nearest to `targets` f32[L, n].

        What a column misses of `anchors` f32[L, n] is added to the targets of later ones, `forward[j, k]` of it from
        column j to k; `targets` is changed to what each column was coded from. `grid` is that of n blocks of L.
        """


class NumPyWalk:
    """`Walk` without a compiler: the reference of the compiled one."""

    def codes(self, targets: Floats, anchors: Floats, forward: Floats, grid: Grid) -> tuple[Bytes, Floats]:
        """See `Walk.codes`."""
        length, groups = len(targets), grid.scale.shape[1]
        codes, values = np.empty(targets.shape, np.uint8), np.empty_like(targets)
        for j in range(length):
            group = j * groups // length
            scale = grid.scale[:, group]
            offset = np.float32(0) if grid.offset is None else grid.offset[:, group]
            codes[j] = _nearest(targets[j] - offset, scale, grid.levels)
            values[j] = grid.levels[codes[j]].astype(np.float32) * scale + offset
            missed = anchors[j] - values[j]
            targets[j + 1 :] += forward[j, j + 1 :, None] * missed
        return codes, values


def _nearest(x: Floats, scale: Floats, levels: Levels) -> Bytes:
    with np.errstate(all="ignore"):
        ratio = np.where(scale == 0, np.float32(0), x / scale)
    if consecutive(levels):
        low, high = np.float32(levels[0]), np.float32(levels[-1])
        return (np.rint(np.minimum(np.maximum(ratio, low), high)) - low).astype(np.uint8)
    return np.searchsorted(boundaries(levels), ratio).astype(np.uint8)


NUMPY_WALK: Walk = NumPyWalk()
