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
        return Entry(self.in_sum2 * np.float32(factor), self.counts * np.float32(factor))


def problem_of(entry: Entry) -> str:
    """What no sum of squares and no count can be; empty where all is well."""
    for what, values in (("sums", entry.in_sum2), ("counts", entry.counts)):
        if not np.isfinite(values).all():
            return f"has {what} that are no numbers"
        if (values < 0).any():
            return f"has negative {what}"
    return ""
