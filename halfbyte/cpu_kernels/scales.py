"""Scale and offset of codes that stand for values on both sides of zero."""

from __future__ import annotations

from .jit import helper
from .ops import mul, same


@helper
def symmetric(scale, middle):
    """Bytes stand `middle` above their value."""
    return scale, mul(scale, same(-middle))


@helper
def symmetric_halves(first, second, middle):
    """Both halves of a group so."""
    return first, mul(first, same(-middle)), second, mul(second, same(-middle))
