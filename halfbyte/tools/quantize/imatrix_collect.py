"""`collect`: an importance matrix from a model that reads a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...model.backend import Progress
from ...runtime.bare import BareModel
from .calibration import count_tokens, read_window, readers_of
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

    The sums depend neither on the number of threads nor on that of windows read before. `progress("calibrate", done,
    windows)` is told of every window. Raises `FormatError` where a value is no number.
    """
    readers = readers_of(model)
    sums = {value: np.zeros(model.program.widths[value]) for value in readers}
    for number, ids in enumerate(windows):
        if progress is not None:
            progress("calibrate", number, len(windows))
        read_window(model, ids)
        for value, total in sums.items():
            total += column_energy(model.tapped(value))
            if not np.isfinite(total).all():
                raise FormatError(
                    f"what {readers[value][0]!r} multiplies is no number in window {number}: the model's weights are "
                    "damaged, or hold NaN or infinity",
                    path=model.path,
                )
    if progress is not None:
        progress("calibrate", len(windows), len(windows))
    counts = np.array([count_tokens(windows)], np.float32)
    entries = {
        name: Entry(sums[value][None].astype(np.float32), counts) for value in readers for name in readers[value]
    }
    return ImportanceMatrix(entries, tuple(datasets), len(windows), model.window)


def column_energy(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """f64[M]: the sum of squares of each column of f32[T, M]."""
    energy = np.zeros(x.shape[1])
    for start in range(0, len(x), ROWS):
        part = x[start : start + ROWS]
        energy += np.einsum("tm,tm->m", part, part)
    return energy
