"""`ScaleGrid`: a tensor of scales (or zeros), each for a rectangle of a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....quant.block import Floats
from ..tensor_source import SourceTensor
from .spread import Spread
from .stored import Stored, wrong


@dataclass(frozen=True)
class ScaleGrid:
    """One number for `rows` x `columns` weights, fewer at the edges; `weight` is [N, M] or [E, N, M]."""

    tensor: SourceTensor
    weight: tuple[int, ...]
    rows: int
    columns: int

    @property
    def spread(self) -> Spread:
        """Which of a row's scales serves which column."""
        return Spread(self.columns)

    def of_rows(self, stored: Stored, start: int, stop: int) -> Floats:
        """f32[rows, groups] for entries `start` to `stop` - 1 of the weight's first dimension, all their rows."""
        n, m = self.weight[-2:]
        groups = -(-m // self.columns)
        if math.prod(self.tensor.shape) == 1:
            count = stop - start if len(self.weight) == 2 else (stop - start) * n
            return np.full((count, 1), stored.floats(self.tensor).reshape(()))
        if len(self.weight) == 3:
            stacked = stored.floats(self.tensor, start, stop).reshape(stop - start, -(-n // self.rows), groups)
            return stacked.repeat(self.rows, axis=1)[:, :n].reshape(-1, groups)
        first = start // self.rows
        values = stored.floats(self.tensor, first, -(-stop // self.rows)).reshape(-1, groups)
        skipped = start - first * self.rows
        return values.repeat(self.rows, axis=0)[skipped : skipped + stop - start]


def grid_of(tensor: SourceTensor, weight: SourceTensor, shape: tuple[int, ...], blocks: Sequence[int]) -> ScaleGrid:
    """How the scales in `tensor` lie over a weight of `shape`: one for all, a row, or a rectangle of `blocks`.

    Raises `FormatError` where the shapes fit none of these.
    """
    n, m = shape[-2:]
    if math.prod(tensor.shape) == 1:
        return ScaleGrid(tensor, shape, n, m)
    per_matrix = tensor.shape[len(shape) - 2 :]
    if tensor.shape[: len(shape) - 2] == shape[:-2]:
        if per_matrix in ((n, 1), (n,)):
            return ScaleGrid(tensor, shape, 1, m)
        if len(shape) == 3 and per_matrix in ((), (1,), (1, 1)):
            return ScaleGrid(tensor, shape, n, m)
        if blocks and per_matrix == (-(-n // blocks[0]), -(-m // blocks[1])):
            return ScaleGrid(tensor, shape, blocks[0], blocks[1])
    size = f"blocks of {blocks[0]} x {blocks[1]}" if blocks else "blocks of a size that the config does not give"
    raise wrong(
        tensor, f"has shape {list(tensor.shape)}, which is no scale a row and none for {size} of {weight.name!r} "
        f"of shape {list(shape)}",
    )  # fmt: skip
