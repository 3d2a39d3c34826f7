"""`Softmax`: the probabilities behind one row of logits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Softmax:
    """Shapes: `shifted` f32[V] logits less their maximum, `powers` f32[V] their exponentials.

    Sums are float64: of 262144 small numbers float32 would keep four digits.
    """

    shifted: NDArray[np.float32]
    powers: NDArray[np.float32]
    total: float

    @classmethod
    def of(cls, logits: NDArray[np.float32]) -> Self:
        """From f32[V]. Where a logit is NaN or infinite, `total` is NaN."""
        with np.errstate(invalid="ignore"):
            shifted = logits - logits.max()
            powers = np.exp(shifted)
        return cls(shifted, powers, float(powers.sum(dtype=np.float64)))

    @property
    def best(self) -> int:
        """The likeliest token; the lower one of two alike."""
        return int(self.shifted.argmax())

    def surprise(self, token: int) -> float:
        """Negative log-likelihood of a token, in nats."""
        return math.log(self.total) - float(self.shifted[token])

    def divergence(self, other: Softmax) -> float:
        """KL(self || other) in nats."""
        gain = np.multiply(self.powers, self.shifted - other.shifted).sum(dtype=np.float64)
        exact = float(gain) / self.total + math.log(other.total / self.total)
        # It is never negative; rounding can make one of nearly equal rows so by some 1e-8.
        return max(exact, 0.0)
