"""`State`: what the reference's ops work on during one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .backend import Weight
from .program import StepBatch
from .reference_kv import PagedKv

Floats = NDArray[np.float32]


@dataclass
class State:
    """What ops work on: the step, the values so far, the KV pages, and weights decoded when first used."""

    batch: StepBatch
    kv: PagedKv
    weights: Mapping[str, Weight]
    decoded: dict[str, Floats]
    values: dict[str, Floats] = field(default_factory=dict)

    def weight(self, name: str) -> Floats:
        """f32[N, M]."""
        if name not in self.decoded:
            self.decoded[name] = self.weights[name].decode()
        return self.decoded[name]

    def product(self, x: Floats, name: str, rows: slice = slice(None)) -> Floats:
        """`x @ weight[rows].T`."""
        return np.asarray(x @ self.weight(name)[rows].T)
