"""How the states of a text's tokens become one vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedError
from .metadata import Metadata

POOLINGS = ("none", "mean", "cls", "last")
"""In the order of their numbers in `<arch>.pooling_type`."""


def read_pooling(metadata: Metadata) -> str:
    """As the file says, the mean where it does not. Raises `UnsupportedError` for one that is not in the list."""
    number = metadata.integer("pooling_type", POOLINGS.index("mean"), low=-1)
    if not 0 <= number < len(POOLINGS):
        if number == -1:
            return "mean"
        raise UnsupportedError(f"{metadata.arch}.pooling_type: unknown number {number}", known=POOLINGS)
    return POOLINGS[number]


def pooled(states: NDArray[np.float32], pooling: str) -> NDArray[np.float32]:
    """f32[D] of `states` f32[T, D]: their mean, the first or the last."""
    if pooling == "mean":
        # Sums in double precision have one result whatever their order is.
        return np.asarray(states.mean(axis=0, dtype=np.float64), np.float32)
    return np.array(states[0 if pooling == "cls" else -1])
