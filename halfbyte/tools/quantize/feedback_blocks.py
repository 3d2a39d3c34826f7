"""`BlockFeedback`: blocks whose codes stand for several weights at once, coded as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...quant.block import BlockFormat, Bytes, Floats
from ...quant.encoder import Search
from .feedback_rows import RowErrors


@dataclass(frozen=True)
class Packed:
    """A block of n rows: bytes u8[n, block_bytes], and the values f32[L, n] that they stand for."""

    packed: Bytes
    values: Floats

    def where(self, better: NDArray[np.bool_], other: Packed) -> Packed:
        """Rows of itself where `better` bool[n], elsewhere of the other."""
        return Packed(np.where(better[:, None], self.packed, other.packed), np.where(better, self.values, other.values))


@dataclass(frozen=True)
class BlockFeedback:
    """For formats with `whole`: only blocks make up for each other."""

    format: BlockFormat
    search: Search

    def first(self, rows: RowErrors, block: slice, asked: Floats) -> Packed:
        """While no column behind the block is coded: with F' = I + F, errors before ask for `e F'[:b, b] F'[b, b]^-1`.

        What the block then misses costs `m F'[b, b] C F'[b, b]^T m^T`, of which a search can take the diagonal.
        """
        hessian = rows.hessian
        corner = hessian.forward[block, block].astype(np.float64) + np.eye(block.stop - block.start)
        targets = rows.weights[block] + np.linalg.solve(corner.T, asked).astype(np.float32)
        return self._coded(targets, (corner**2 @ hessian.cost[block]).astype(np.float32))

    def again(self, rows: RowErrors, block: slice, slope: Floats, now: Packed) -> Iterator[Packed]:
        """The block where it would cost least if it could hold any values."""
        corner = rows.hessian.matrix[block, block]
        step = np.linalg.solve(corner.astype(np.float64), slope).astype(np.float32)
        yield self._coded(now.values + step, np.diag(corner).copy())

    def data(self, coded: Packed) -> Bytes:
        """u8[n, block_bytes]."""
        return coded.packed

    def _coded(self, targets: Floats, cost: Floats) -> Packed:
        assert self.format.encoder is not None
        assert self.format.encoder.whole is not None
        values = np.ascontiguousarray(targets.T)
        packed = self.format.encoder.whole(values, np.broadcast_to(cost, values.shape).copy(), self.search)
        return Packed(packed, np.ascontiguousarray(self.format.decode(packed).T))
