"""`moments`: how the columns of what matrices multiply go together, for whoever makes up for one column in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.backend import Progress
from ...runtime.bare import BareModel
from .calibration import read_window, readers_of

_SLAB = 1024
"""Rows of a moment at a time."""


@dataclass(frozen=True)
class Moment:
    """`total` f32[M, M] is X^T X, symmetric, of the rows X[n, M] of `value`, which all of `weights` multiply."""

    value: str
    weights: tuple[str, ...]
    total: NDArray[np.float32]
    rows: int


def moments(
    model: BareModel,
    windows: Sequence[NDArray[np.int32]],
    *,
    budget_bytes: int,
    values: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Moment]:
    """The moments of tapped `values` of `model` (see `open_tapped`), in the program's order; None for all of them.

    As many as fit in `budget_bytes`, one at least, are summed up together; the text is read once for each such group.
    Of what experts multiply there is one moment for all of them together, in which each row counts once.
    A moment that was handed out is the caller's: drop it before asking for the next to stay within the budget.
    `progress("calibrate", done, windows)` counts the windows of all passes.
    """
    readers = readers_of(model)
    wanted = list(readers) if values is None else [value for value in readers if value in set(values)]
    groups = group(wanted, model.program.widths, budget_bytes)
    steps = len(groups) * len(windows)
    for number, members in enumerate(groups):
        totals = {value: np.zeros((model.program.widths[value],) * 2, np.float32) for value in members}
        spare = np.empty(max(min(_SLAB, len(total)) * len(total) for total in totals.values()), np.float32)
        rows = dict.fromkeys(members, 0)
        for index, ids in enumerate(windows):
            if progress is not None:
                progress("calibrate", number * len(windows) + index, steps)
            read_window(model, ids)
            for value, total in totals.items():
                x = model.tapped(value)
                _accumulate(x, total, spare)
                rows[value] += len(x)
        for value in members:
            yield Moment(value, readers[value], _mirrored(totals.pop(value)), rows[value])
    if progress is not None:
        progress("calibrate", steps, steps)


def group(values: Sequence[str], widths: dict[str, int], budget_bytes: int) -> list[list[str]]:
    """Neighbours whose moments fit in the budget together, with room for one more of the widest."""
    groups: list[list[str]] = []
    used = widest = 0
    for value in values:
        size = 4 * widths[value] ** 2
        if not groups or used + size + max(widest, size) > budget_bytes:
            groups.append([])
            used = widest = 0
        groups[-1].append(value)
        used, widest = used + size, max(widest, size)
    return groups


def _accumulate(x: NDArray[np.float32], total: NDArray[np.float32], spare: NDArray[np.float32]) -> None:
    """Add X^T X to the part on and below the diagonal, in slabs: to write all of both takes longer than to compute."""
    for start in range(0, len(total), _SLAB):
        rows, columns = slice(start, start + _SLAB), slice(0, start + _SLAB)
        part = total[rows, columns]
        product = spare[: part.size].reshape(part.shape)
        np.matmul(x[:, rows].T, x[:, columns], out=product)
        part += product


def _mirrored(total: NDArray[np.float32]) -> NDArray[np.float32]:
    """The part above the diagonal as below it."""
    for start in range(0, len(total), _SLAB):
        rows = slice(start, start + _SLAB)
        corner = total[rows, rows]
        total[:start, rows] = total[rows, :start].T
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
    return total
