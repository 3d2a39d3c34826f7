"""Speeds of a rope as fractions of a turn in 64 bits, as `kernels/turns.cuh` multiplies them with positions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..model.program import RopeTable

TURN = 2 * Fraction(31415926535897932384626433832795028841971, 10**40)


def turns_data(table: RopeTable) -> bytes:
    """u64[n]: turns a position of each pair, times 2^64; whole turns fall off."""
    turns = [round(Fraction(speed) / TURN * (1 << 64)) % (1 << 64) for speed in table.inv_freq]
    return np.array(turns, np.uint64).tobytes()
