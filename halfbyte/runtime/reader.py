"""`RowReader`: who wants to see the logits of every token of a text."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from .memory import free_memory


class RowReader(Protocol):
    """Shown the rows of logits of a text, chunk by chunk and in order, in the engine's thread."""

    def read(self, start: int, rows: NDArray[np.float32]) -> None:
        """`rows` f32[R, V] follow the tokens `start` .. `start + R - 1`; they are gone afterwards."""


class KeepRows:
    """Keeps them all: `rows` f32[n, V]. Raises `ResourceError` where they do not fit memory."""

    def __init__(self, num_tokens: int, vocab_size: int) -> None:
        needed, free = 4 * num_tokens * vocab_size, free_memory()
        if free is not None and needed > free:
            raise ResourceError(
                f"the logits of {num_tokens} tokens take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: ask "
                "for fewer at a time",
                needed=needed,
                free=free,
            )
        self.rows = np.empty((num_tokens, vocab_size), np.float32)

    def read(self, start: int, rows: NDArray[np.float32]) -> None:
        """Copy a chunk."""
        self.rows[start : start + len(rows)] = rows
