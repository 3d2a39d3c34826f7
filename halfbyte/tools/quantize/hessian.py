"""`Hessian`: what errors of a row of weights cost together, and how later columns can make up for earlier ones.

With the inputs X of a matrix, errors e of a row change its outputs by X e, so they cost `e H e^T` with H = X^T X. Write
H = (I + F) C (I + F)^T with F strictly upper triangular and C diagonal: the cost is `sum C_j (e_j + (e F)_j)^2`, and so
it is least, column by column, where column j is coded from `w_j + (e F)_j`, of the errors before it. This is the
observation behind optimal brain quantization (Frantar and Alistarh 2022, arXiv 2208.11580) and GPTQ (arXiv 2210.17323)
in the form of Chee et al. 2023 (arXiv 2307.13304), which inverts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

DAMPING = 0.5
"""Part of the mean diagonal that is added to the diagonal: what a text did not show is not taken to be free.

Far more than a factor needs, because models meet other texts: with 16 k tokens of technical prose, errors that 0.01
took down to a third there stayed what they were on a story; from 0.3 to 1 they came down by a third in both.
"""
_MORE = 10.0
_BLOCK = 64
"""Columns factored by LAPACK at a time: so few that it uses no threads, whose number would show in the last bits."""
_PANEL = 512
"""Columns that all others are brought up to date with at a time: memory is what a large matrix waits for."""


@dataclass(frozen=True)
class Hessian:
    """Of M columns: `matrix` f32[M, M] is H, damped, with a mean diagonal of 1; `forward` f32[M, M] is F; `cost` f32[M]
    is C.
    """

    matrix: Floats
    forward: Floats
    cost: Floats

    @classmethod
    def of(cls, moment: Floats, damping: float = DAMPING) -> Hessian:
        """From X^T X f32[M, M], of any scale; without any input all columns are alike.

        Raises `ConfigError` for NaN and infinity.
        """
        matrix = _scaled(moment)
        while True:
            damped = matrix + np.float32(damping) * np.eye(len(matrix), dtype=np.float32)
            damped /= np.float32(1 + damping)
            try:
                upper = factor(damped)
            except np.linalg.LinAlgError:
                damping *= _MORE  # rounding alone made it indefinite
                continue
            root = np.diag(upper).copy()
            forward = upper
            forward /= root
            np.fill_diagonal(forward, 0)
            return cls(damped, forward, root * root)


def _scaled(moment: Floats) -> Floats:
    if not np.isfinite(moment).all():
        raise ConfigError("the calibration's inputs have NaN or infinity: the model's weights are damaged")
    mean = np.diag(moment).mean(dtype=np.float64)
    return (moment / mean).astype(np.float32) if mean > 0 else np.eye(len(moment), dtype=np.float32)


def factor(matrix: Floats) -> Floats:
    """Upper triangular R f32[M, M] with R R^T = `matrix`, from the last column to the first.

    Raises `LinAlgError` where the matrix is not positive definite.
    """
    rest = matrix.astype(np.float32, copy=True)
    upper = np.zeros_like(rest)
    for stop in range(len(rest), 0, -_PANEL):
        panel = slice(max(0, stop - _PANEL), stop)
        _factor_panel(rest, upper, panel)
        for later in range(panel.start, 0, -_PANEL):  # the panels to come: nobody looks below the diagonal
            columns = slice(max(0, later - _PANEL), later)
            rest[:later, columns] -= upper[:later, panel] @ upper[columns, panel].T
    return upper


def _factor_panel(rest: Floats, upper: Floats, panel: slice) -> None:
    for stop in range(panel.stop, panel.start, -_BLOCK):
        block = slice(max(panel.start, stop - _BLOCK), stop)
        corner = np.linalg.cholesky(rest[block, block][::-1, ::-1].astype(np.float64))[::-1, ::-1]
        upper[block, block] = corner
        above, left = slice(0, block.start), slice(panel.start, block.start)
        upper[above, block] = rest[above, block] @ np.linalg.inv(corner).T.astype(np.float32)
        rest[above, left] -= upper[above, block] @ upper[left, block].T
