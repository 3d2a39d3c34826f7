"""`Rows`: a few numbers of every row of logits, and how far others are from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

COLUMNS = 16
"""Logits kept of a row. A wrong rope, tensor or block moves nearly all of them, so few are enough."""


@dataclass(frozen=True)
class Rows:
    """What is kept of f32[T, V]: logits, or the states of an encoder.

    Shapes: `columns` [COLUMNS] are the ones whose values `sample` [T, COLUMNS] are; `best` [T] is the largest of a row,
    `margin` [T] how far the second is below; `mean` and `rms` [T] are over the whole row.
    """

    columns: Ints
    sample: Floats
    best: Ints
    margin: Floats
    mean: Floats
    rms: Floats

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each row, the unit of all distances; [T]."""
        mean, rms = self.mean.astype(np.float64), self.rms.astype(np.float64)
        return np.sqrt(np.maximum(rms**2 - mean**2, np.finfo(np.float32).tiny))

    def distances(self, others: Rows) -> NDArray[np.float64]:
        """How far `others`, of the same columns, are from these: the largest difference of a row, in spreads; [T].

        Infinite where one of both is not a number.
        """
        ours, theirs = self._numbers(), others._numbers()
        with np.errstate(invalid="ignore"):
            apart = np.abs(theirs - ours).max(axis=1) / self.spread
        return np.where(np.isnan(apart), np.inf, apart)

    def same_best(self, others: Rows, tolerance: float) -> NDArray[np.bool_]:
        """Whether the same column is largest, or the second so near that an error of `tolerance` may exchange them."""
        near = self.margin <= 2 * tolerance * self.spread
        return np.asarray((self.best == others.best) | near)

    def _numbers(self) -> NDArray[np.float64]:
        return np.column_stack([self.sample, self.mean, self.rms]).astype(np.float64)


def choose_columns(width: int) -> Ints:
    """Which columns of so many to keep; they are written down, so how they are chosen may change."""
    return np.sort(np.random.default_rng(width).integers(0, width, COLUMNS)).astype(np.int32)


def summarise(logits: Floats, columns: Ints) -> Rows:
    """`Rows` of f32[T, V]."""
    with np.errstate(invalid="ignore", over="ignore"):
        two = np.sort(np.partition(logits, -2, axis=1)[:, -2:], axis=1) if logits.shape[1] > 1 else logits
        return Rows(
            columns=columns,
            sample=logits[:, columns],
            best=logits.argmax(axis=1).astype(np.int32),
            margin=two[:, -1] - two[:, 0],
            mean=logits.mean(axis=1, dtype=np.float64).astype(np.float32),
            rms=np.sqrt(np.square(logits, dtype=np.float64).mean(axis=1)).astype(np.float32),
        )
