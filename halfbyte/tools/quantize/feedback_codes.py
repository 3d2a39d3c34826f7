"""`CodeFeedback`: blocks in which each weight has a code of its own, coded one column after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...quant.block import Bytes, Floats
from ...quant.encoder import Encoder, Fit, Grid, Search
from ...quant.walk import Walk
from .feedback_rows import RowErrors


@dataclass(frozen=True)
class Codes:
    """A block of n rows: the scales, codes u8[L, n], and the values f32[L, n] that they stand for."""

    fit: Fit
    codes: Bytes
    values: Floats

    def where(self, better: NDArray[np.bool_], other: Codes) -> Codes:
        """Rows of itself where `better` bool[n], elsewhere of the other."""
        mine, theirs, rows = self.fit.grid, other.fit.grid, better[:, None]
        offset = None
        if mine.offset is not None and theirs.offset is not None:
            offset = np.where(rows, mine.offset, theirs.offset)
        grid = Grid(np.where(rows, mine.scale, theirs.scale), offset, mine.levels)
        fields = tuple(np.where(rows, a, b) for a, b in zip(self.fit.fields, other.fit.fields, strict=True))
        return Codes(
            Fit(grid, fields), np.where(better, self.codes, other.codes), np.where(better, self.values, other.values)
        )


@dataclass(frozen=True)
class CodeFeedback:
    """For formats with `fit` and `pack`."""

    encoder: Encoder
    search: Search
    walk: Walk

    def first(self, rows: RowErrors, block: slice, asked: Floats) -> Codes:
        """While no column behind the block is coded; the errors before it ask for `asked` f32[L, n] more."""
        hessian = rows.hessian
        targets = rows.weights[block] + asked
        fit = self._fit(targets, hessian.cost[block])
        codes, values = self.walk.codes(targets, rows.weights[block], hessian.forward[block, block], fit.grid)
        return Codes(fit, codes, values)

    def again(self, rows: RowErrors, block: slice, slope: Floats, now: Codes) -> Iterator[Codes]:
        """Each column where it costs least while all others stay: on the scales it has, and on ones fitted to that."""
        corner = rows.hessian.matrix[block, block]
        own = np.diag(corner).copy()
        targets = now.values + slope / own[:, None]
        forward = np.triu(corner / own, 1)
        for fit in (now.fit, self._fit(targets, own)):
            codes, values = self.walk.codes(targets.copy(), now.values, forward, fit.grid)
            yield Codes(fit, codes, values)

    def data(self, coded: Codes) -> Bytes:
        """u8[n, block_bytes]."""
        assert self.encoder.pack is not None
        return self.encoder.pack(coded.fit, np.ascontiguousarray(coded.codes.T))

    def _fit(self, targets: Floats, cost: Floats) -> Fit:
        assert self.encoder.fit is not None
        values = np.ascontiguousarray(targets.T)
        return self.encoder.fit(values, np.broadcast_to(cost, values.shape), self.search)
