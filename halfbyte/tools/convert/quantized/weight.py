"""`QuantizedWeight`: stored tensors that are one weight together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..tensor_source import SourceTensor


@dataclass(frozen=True)
class QuantizedWeight:
    """`tensor` is what it appears as, `members` the names it takes the place of.

    `rows(start, stop)` are entries of the first dimension, as `DTYPES` says of `tensor.dtype`; several threads may ask.
    """

    tensor: SourceTensor
    members: tuple[str, ...]
    rows: Callable[[int, int], NDArray[Any]]
