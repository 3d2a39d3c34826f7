"""Uniform numbers that depend on a seed and an index alone."""

from __future__ import annotations

import os

_MASK = 2**64 - 1


DRAW, EXCLUDE = range(2)
"""What a number is for: each purpose has a stream of its own."""


def uniform(seed: int, index: int, purpose: int = DRAW) -> float:
    """The `index`-th number of the stream of `seed` and `purpose`, in [0, 1).

    Counter-based, so a sequence draws the same numbers whatever its neighbours do. Source: SplitMix64 (Steele, Lea and
    Flood, "Fast splittable pseudorandom number generators", 2014).
    """
    start = _mix(seed) if purpose == DRAW else _mix(_mix(seed) ^ purpose)
    z = (start + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
    return (_mix(z) >> 11) * 2.0**-53


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def fresh_seed() -> int:
    """A seed nobody can foresee, in [0, 2^63)."""
    return int.from_bytes(os.urandom(8), "little") >> 1
