"""`State`: what the reference's ops work on during one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .backend import Weight
from .program import StepBatch
from .reference_kv import PagedKv
from .streamed import multiply

Floats = NDArray[np.float32]


@dataclass
class State:
    """What ops work on: the step, the values so far, the KV pages, and weights decoded when first used.

    `lean`: matrices are decoded anew for each product, a few rows at a time, so that none is ever in memory whole.
    """

    batch: StepBatch
    kv: PagedKv
    weights: Mapping[str, Weight]
    decoded: dict[str, Floats]
    values: dict[str, Floats] = field(default_factory=dict)
    lean: bool = False

    def weight(self, name: str) -> Floats:
        """f32[N, M]."""
        if name not in self.decoded:
            self.decoded[name] = self.weights[name].decode()
        return self.decoded[name]

    def product(self, x: Floats, name: str, rows: slice = slice(None)) -> Floats:
        """`x @ weight[rows].T`."""
        if self.lean:
            return multiply(x, self.weights[name], rows)
        return np.asarray(x @ self.weight(name)[rows].T)
