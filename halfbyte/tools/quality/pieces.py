"""`Pieces`: logits of many tokens of a window in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...runtime.bare import BareModel

PIECE_BYTES = 1 << 26
"""Memory for logits; a window of 512 with a vocabulary of 262144 would have 267 MB of them."""


class Pieces:
    """Logits behind the tokens `first` up to `stop` of a window, a few rows at a time in memory used again."""

    def __init__(self, model: BareModel, first: int, stop: int) -> None:
        self._model = model
        rows = stop - first
        count = -(-4 * rows * model.vocab_size // PIECE_BYTES)
        self._cuts = [first + rows * i // count for i in range(count + 1)]
        self._out = np.empty((-(-rows // count), model.vocab_size), np.float32)

    def of(self, ids: NDArray[np.int32]) -> Iterator[NDArray[np.float32]]:
        """f32[n, V], the n rows together `first` to `stop`; each is gone when the next one comes."""
        start = 0
        for begin, end in pairwise(self._cuts):
            rows = np.arange(begin, end, dtype=np.int32)
            yield self._model.logits(ids[:end], rows, start=start, out=self._out[: end - begin])
            start = end
