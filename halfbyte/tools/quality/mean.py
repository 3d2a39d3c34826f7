"""`Mean`: a mean and its standard error, without keeping the values."""

from __future__ import annotations

import math


class Mean:
    """Welford's running mean, which does not subtract large sums of squares."""

    def __init__(self) -> None:
        self.count = 0
        self.value = 0.0
        self._spread = 0.0

    def add(self, value: float) -> None:
        """Take one more value in."""
        self.count += 1
        step = value - self.value
        self.value += step / self.count
        self._spread += step * (value - self.value)

    @property
    def error(self) -> float:
        """Standard error of the mean; needs two values."""
        return math.sqrt(self._spread / self.count / (self.count - 1))
