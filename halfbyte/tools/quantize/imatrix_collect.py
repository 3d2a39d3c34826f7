"""`collect`: an importance matrix from a model that reads a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...model.backend import Progress
from ...model.taps import routes_of
from ...runtime.bare import BareModel
from .calibration import read_window, readers_of
from .imatrix import ImportanceMatrix
from .imatrix_entry import Entry

ROWS = 64
"""Squares added up in float32 before they join the sum in float64: exact to one in a million, at float32's speed."""


def collect(
    model: BareModel,
    windows: Sequence[NDArray[np.int32]],
    *,
    datasets: Sequence[str] = (),
    progress: Progress | None = None,
) -> ImportanceMatrix:
    """Sums of squares of what each tapped matrix of `model` (see `open_tapped`) multiplies, over all tokens.

    Matrices of experts have sums and counts for each expert, of the tokens that chose it.
    The sums depend neither on the number of threads nor on that of windows read before. `progress("calibrate", done,
    windows)` is told of every window. Raises `FormatError` where a value is no number.
    """
    readers = readers_of(model)
    routes = routes_of(model.program)
    sums = {value: _Sums(routes[value][1] if value in routes else 1, model.program.widths[value]) for value in readers}
    for number, ids in enumerate(windows):
        if progress is not None:
            progress("calibrate", number, len(windows))
        read_window(model, ids)
        for value, total in sums.items():
            total.add(model.tapped(value), _counts(model, *routes[value]) if value in routes else [len(ids)])
            if not np.isfinite(total.energy).all():
                raise FormatError(
                    f"what {readers[value][0]!r} multiplies is no number in window {number}: the model's weights are "
                    "damaged, or hold NaN or infinity",
                    path=model.path,
                )
    if progress is not None:
        progress("calibrate", len(windows), len(windows))
    entries = {name: sums[value].entry() for value in readers for name in readers[value]}
    return ImportanceMatrix(entries, tuple(datasets), len(windows), model.window)


class _Sums:
    """Squares of the rows of each expert, a matrix without experts being the only one; and how many rows that were."""

    def __init__(self, experts: int, width: int) -> None:
        self.energy = np.zeros((experts, width))
        self._rows = np.zeros(experts)

    def add(self, x: NDArray[np.float32], counts: Sequence[int]) -> None:
        """Rows sorted by expert, and how many each has."""
        self._rows += counts
        start = 0
        for expert, count in enumerate(counts):
            self.energy[expert] += column_energy(x[start : start + count])
            start += count

    def entry(self) -> Entry:
        return Entry(self.energy.astype(np.float32), self._rows.astype(np.float32))


def _counts(model: BareModel, route: str, experts: int) -> list[int]:
    """How many rows each expert got in the last window."""
    chosen = model.tapped(route)
    numbers = chosen[:, : chosen.shape[1] // 2].astype(np.intp)
    return [int(count) for count in np.bincount(numbers.reshape(-1), minlength=experts)]


def column_energy(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """f64[M]: the sum of squares of each column of f32[T, M]."""
    energy = np.zeros(x.shape[1])
    for start in range(0, len(x), ROWS):
        part = x[start : start + ROWS]
        energy += np.einsum("tm,tm->m", part, part)
    return energy
