"""Which products are one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..model import program as ir
from .lower import Lowering

Product = TypeVar("Product", bound="ir.Linear | ir.ExpertLinear")


def together(low: Lowering, op: Product, most: int, fits: Callable[[Product], bool] | None = None) -> list[Product]:
    """The product and up to `most` - 1 others that fit, of the same rows and of matrices of one family: now done."""
    family, found = low.packed[op.weight].family, [op]
    for other in low.readers(op.x):
        if len(found) == most or not isinstance(other, type(op)) or other is op:
            continue
        if low.is_done(other) or not low.in_walk(other) or low.packed[other.weight].family != family:
            continue
        if fits is None or fits(other):
            low.done(other)
            found.append(other)
    return found
