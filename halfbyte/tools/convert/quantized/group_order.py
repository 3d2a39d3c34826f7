"""`group_order`: the group that each column belongs to, where columns were quantized in another order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..tensor_source import SourceTensor
from .stored import Stored, wrong


def group_order(stored: Stored, tensor: SourceTensor, group: int, groups: int) -> NDArray[np.intp] | None:
    """Of each column, or None where neighbours share a group. Raises `FormatError` for groups that are not there."""
    order: NDArray[np.intp] = stored.read(tensor).astype(np.intp)
    if order.min() < 0 or order.max() >= groups:
        raise wrong(tensor, f"names groups from {order.min()} to {order.max()}, but there are {groups}")
    return None if np.array_equal(order, np.arange(len(order)) // group) else order
