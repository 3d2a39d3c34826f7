"""`Selection`: the best of rows of logits, the rows side by side on the team's threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .instruction import KERNEL, LAYOUTS, WORDS
from .threads import Team

MOST_SORTED = 1024
"""Up to here the compiled selection is used; it inserts one by one, so a larger k is sorted as a whole."""

Best = tuple[NDArray[np.int32], NDArray[np.float32]]

_LOGITS, _SIZE, _K, _IDS, _VALUES, _PEAKS, _TILES = (offset // 8 for offset in LAYOUTS["top_k"].offsets())


class Selection:
    """Keeps the instructions and the room for what they find from call to call. One thread at a time may use it.

    `words` i64[n, WORDS] is where the instructions shall lie, for up to n rows; without it they have a place of their
    own, for any number.
    """

    def __init__(self, kernel: int, words: NDArray[np.int64] | None = None) -> None:
        self._kernel = kernel
        self._asked: tuple[int, int, tuple[int, ...], tuple[int, ...]] | None = None
        self._wanted: list[int] = []
        self._ks = self._found = np.zeros(0, np.int64)
        self._grow(np.zeros((1, WORDS), np.int64) if words is None else words)

    def rows(
        self, team: Team, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32] | None = None
    ) -> list[Best | None]:
        """The `ks[r]` best of each row of f32[R, V], best first; among equals the lower id first; None for 0.

        NaN and -inf are never chosen. `peaks` f32[.., V / 16] are those of the rows' tiles, whole cache lines a row.
        """
        count = self.begin(logits, ks, peaks)
        if count:
            team.run(self._words, count)
        return self.collect(logits, ks)

    def begin(self, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32] | None) -> int:
        """Make the instructions ready; how many there are."""
        # From step to step the same is asked, and a model has just swept the caches that this code was in.
        at = 0 if peaks is None else peaks.__array_interface__["data"][0]
        asked = logits.__array_interface__["data"][0], at, logits.shape, tuple(ks)
        if asked != self._asked:
            assert logits.flags.c_contiguous
            self._prepare(*asked)
        self._found[:] = self._ks
        return len(self._wanted)

    def collect(self, logits: NDArray[np.float32], ks: Sequence[int]) -> list[Best | None]:
        """What the instructions found, once they ran."""
        if len(self._wanted) == len(ks):
            return [*self._collect()] if ks else []
        found: list[Best | None] = [_sorted(logits[row], k) if k > MOST_SORTED else None for row, k in enumerate(ks)]
        for row, best in zip(self._wanted, self._collect() if self._wanted else [], strict=True):
            found[row] = best
        return found

    def _prepare(self, address: int, peaks: int, shape: tuple[int, ...], ks: tuple[int, ...]) -> None:
        self._wanted = wanted = [row for row, k in enumerate(ks) if 0 < k <= MOST_SORTED]
        if len(wanted) > len(self._words):
            self._grow(np.zeros((len(wanted), WORDS), np.int64))
        self._words[: len(wanted), _SIZE] = shape[1]
        self._words[: len(wanted), _LOGITS] = address + np.array(wanted, np.int64) * 4 * shape[1]
        stride = -(-shape[1] // 256) * 64
        self._words[: len(wanted), _PEAKS] = peaks + np.array(wanted, np.int64) * stride if peaks else 0
        self._ks = np.array([ks[row] for row in wanted], np.int64)
        self._found = self._words[: len(wanted), _K]
        self._asked = address, peaks, shape, ks

    def _collect(self) -> list[Best]:
        found = self._found.tolist()
        most = max(found)
        ids, values = self._ids[: len(found), :most].copy(), self._values[: len(found), :most].copy()
        return [(ids[place, :count], values[place, :count]) for place, count in enumerate(found)]

    def _grow(self, words: NDArray[np.int64]) -> None:
        rows = len(words)
        self._words = words
        self._ids = np.zeros((rows, MOST_SORTED), np.int32)
        self._values = np.zeros((rows, MOST_SORTED), np.float32)
        self._tiles = np.zeros((rows, MOST_SORTED), np.int32)
        self._words[:, KERNEL // 8] = self._kernel
        self._words[:, _IDS] = self._ids.ctypes.data + np.arange(rows) * self._ids.strides[0]
        self._words[:, _TILES] = self._tiles.ctypes.data + np.arange(rows) * self._tiles.strides[0]
        self._words[:, _VALUES] = self._values.ctypes.data + np.arange(rows) * self._values.strides[0]


def _sorted(row: NDArray[np.float32], k: int) -> Best:
    order = np.argsort(-row, kind="stable")[:k].astype(np.int32)
    order = order[row[order] > -np.inf]
    return order, row[order]
