"""How threads share the units of an instruction."""

from __future__ import annotations

from .instruction import COUNTER
from .jit import helper
from .memory import atomic_exchange_if, atomic_load


@helper
def claim(instr, units, nth):
    """First and last + 1 of the next run of units: half of a fair share of those that are left.

    Long runs at first, because reading ahead in memory pays only along a run; short ones at last, so that all threads
    end together, slow cores among them. Nothing is left when both are `units`.
    """
    first = atomic_load(instr + COUNTER)
    while first < units:
        last = first + max(1, (units - first) // (2 * nth))
        seen = atomic_exchange_if(instr + COUNTER, first, last)
        if seen == first:
            return first, last
        first = seen
    return units, units
