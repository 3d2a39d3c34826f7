"""`Encoder`: how a format is written by search, taken apart so that others can choose the codes themselves.

`fit` chooses scales and offsets of a block, which leaves a `Grid` of values it can hold; `pack` puts codes on that grid
into bytes. Plain encoding takes the nearest code of each weight; error feedback walks along the row and takes the code
nearest to what the weights before it left over. Formats whose codes stand for several weights at once (the iq grids)
have an `encode` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .block import Bytes, Floats
from .points import Points, Targets, Trial

Levels = NDArray[np.int16]
"""Integers in ascending order that a code is an index into."""


class Search(Protocol):
    """The slow part of encoding, over G groups of L neighbouring weights: `NUMPY` in `search.py`, or compiled.

    `x` f32[G, L] weights, `w` f32[G, L] how much an error counts, not negative. All implementations give the same bits.
    """

    def scale(self, x: Floats, w: Floats, levels: Levels) -> Floats:
        """f32[G]: s that makes `sum w * (x - s * level)^2` small, each x at its best level; 0 for a group of zeros.

        Of either sign, but not negative for levels that lie alike on both sides of zero.
        """

    def affine(self, x: Floats, w: Floats, top: int, most: float) -> tuple[Floats, Floats]:
        """f32[G] s >= 0 and o <= `most` that make `sum w * (x - (s * q + o))^2` small, q in 0 .. `top`."""

    def codes(self, x: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Bytes:
        """u8[G, L]: index of the level nearest to `(x - offset) / scale`, 0-nearest for scale 0.

        Ties go to the even level, in a table of uneven levels to the lower one.
        """

    def moments(self, x: Floats, w: Floats, scale: Floats, offset: Floats | None, levels: Levels) -> Floats:
        """f32[6, G]: sums of `w` times q^2, q, 1, q * r, r and r^2; r is what the best level q leaves of x.

        They tell the error of any other scale and offset while the codes stay.
        """

    def trial(self, targets: Targets, inverse: Floats, points: Points) -> Trial:
        """The points nearest to `x * inverse`, f32[G] one over the scale of each group, each x at its best point."""


@dataclass(frozen=True)
class Grid:
    """What n blocks can hold once their scales are chosen: `scale * levels[code] + offset`, as the format decodes it.

    Shapes: `scale` f32[n, groups], `offset` f32[n, groups] or None, `levels` i16[k] ascending.
    """

    scale: Floats
    offset: Floats | None
    levels: Levels

    def values(self, codes: Bytes) -> Floats:
        """f32[n, block_len] of u8[n, block_len]."""
        n, length = codes.shape
        values = self.levels[codes].reshape(n, self.scale.shape[1], -1).astype(np.float32) * self.scale[:, :, None]
        if self.offset is not None:
            values = values + self.offset[:, :, None]
        return values.reshape(n, length)


@dataclass(frozen=True)
class Fit:
    """The choice `fit` made for n blocks: the grid, and the same scales as the bytes of the format have them."""

    grid: Grid
    fields: tuple[NDArray[np.uint8], ...]


@dataclass(frozen=True)
class Encoder:
    """Writes blocks of one format. Values f32[n, block_len] and weights f32[n, block_len] or None for all alike.

    Either `fit` and `pack`, or `whole`. Raises `ConfigError` where a block's scale is beyond what the format can hold.
    """

    fit: Callable[[Floats, Floats | None, Search], Fit] | None = None
    pack: Callable[[Fit, Bytes], Bytes] | None = None
    whole: Callable[[Floats, Floats | None, Search], Bytes] | None = None

    def encode(self, values: Floats, weights: Floats | None, search: Search) -> Bytes:
        """u8[n, block_bytes], each weight at the nearest code."""
        if self.whole is not None:
            return self.whole(values, weights, search)
        assert self.fit is not None
        assert self.pack is not None
        fit = self.fit(values, weights, search)
        grid = fit.grid
        groups = values.reshape(grid.scale.size, -1)
        offset = None if grid.offset is None else grid.offset.reshape(-1)
        codes = search.codes(groups, grid.scale.reshape(-1), offset, grid.levels)
        return self.pack(fit, codes.reshape(values.shape))
