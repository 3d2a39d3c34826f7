"""`Reverse`: what the reverse of a program works on, and whom it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .program import KvWrite
from .reference_state import Floats, State

MatrixSeen = Callable[[str, Floats, Floats, int], None]
"""`seen(weight, g, x, first)`: the gradient of a matrix's rows from `first` on is `g.T @ x`, g [T, N], x [T, M]."""
RowsSeen = Callable[[str, NDArray[np.int32], Floats], None]
"""`seen(table, ids, g)`: row `ids[t]` of a table has the gradient `g[t]`, [T, D], summed where ids repeat."""


@dataclass
class Reverse:
    """A step that was run, gradients by value name, and who is told of those of matrices and tables.

    A value that nobody needed has no gradient. Every sequence must have all its tokens in this step.
    """

    state: State
    matrix: MatrixSeen
    rows: RowsSeen
    grads: dict[str, Floats] = field(default_factory=dict)
    keys: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    """Gradients of the keys and values of a KV layer."""
    written: dict[int, KvWrite] = field(default_factory=dict)

    def add(self, name: str, grad: Floats) -> None:
        """One more way in which a value matters."""
        self.grads[name] = self.grads[name] + grad if name in self.grads else grad
