"""`NgramIndex`: where the last tokens of a growing sequence stood before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

LENGTHS = (8, 4, 2)
"""Lengths of the runs that are looked for, the longest first."""
TAIL = LENGTHS[0]
MOST_RUNS = 1 << 15
"""Of each length in a table; two tables are kept, so that memory is bounded and the latest so many are known."""
_TOKEN = 4


class NgramIndex:
    """Knows the latest place of every run of tokens, by the bytes of the run: constant time a token."""

    def __init__(self, ids: NDArray[np.int32]) -> None:
        """Starts with all runs in `ids` [n], in one go."""
        start = max(0, len(ids) - MOST_RUNS)
        self._latest = [_runs(ids[start:], start, length) for length in LENGTHS]
        self._older: list[dict[bytes, int]] = [{} for _ in LENGTHS]

    def push(self, tail: bytes, end: int) -> tuple[int, int]:
        """Take in that the first `end` tokens end with those of `tail`, of which there are at most `TAIL`.

        The place behind the latest earlier occurrence of the longest known run that they end with, and the length of
        the run; (0, 0) where there is none.
        """
        place = found = 0
        for level, length in enumerate(LENGTHS):
            key = tail[-_TOKEN * length :]
            if len(key) < _TOKEN * length:
                continue
            latest = self._latest[level]
            if not found:
                place = latest.get(key, 0) or self._older[level].get(key, 0)
                found = length if place else 0
            latest[key] = end
            if len(latest) >= MOST_RUNS:
                self._older[level], self._latest[level] = latest, {}
        return place, found


def _runs(ids: NDArray[np.int32], start: int, length: int) -> dict[bytes, int]:
    if len(ids) < length:
        return {}
    windows: NDArray[Any] = np.ascontiguousarray(sliding_window_view(ids, length))
    keys = windows.view(f"V{_TOKEN * length}").ravel().tolist()
    return dict(zip(keys, range(start + length, start + len(ids) + 1), strict=True))
