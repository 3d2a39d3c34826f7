"""`Entry`: what an importance matrix knows of one weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Entry:
    """Of one matrix, or of the experts stacked in one tensor.

    `in_sum2` f32[experts, M] sums of squares of the inputs, `counts` f32[experts] over how many tokens.
    """

    in_sum2: Floats
    counts: Floats

    def scaled(self, factor: float) -> Entry:
        """The same importance from `factor` times the tokens."""
        with np.errstate(over="ignore"):  # whoever writes it refuses infinity
            return Entry(self.in_sum2 * np.float32(factor), self.counts * np.float32(factor))

    def __add__(self, other: Entry) -> Entry:
        """Of the tokens of both."""
        with np.errstate(over="ignore"):
            return Entry(self.in_sum2 + other.in_sum2, self.counts + other.counts)


def problem_of(entry: Entry) -> str:
    """What no sum of squares and no count can be; empty where all is well."""
    for what, values in (("sums", entry.in_sum2), ("counts", entry.counts)):
        if not np.isfinite(values).all():
            return f"has {what} that are no numbers"
        if (values < 0).any():
            return f"has negative {what}"
    counts = np.broadcast_to(entry.counts[:, None], entry.in_sum2.shape)
    with np.errstate(over="ignore"):
        means = np.divide(entry.in_sum2, counts, out=np.zeros_like(entry.in_sum2), where=counts > 0)
    return "" if np.isfinite(means).all() else "has sums too large for its counts"
