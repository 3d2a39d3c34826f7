"""Threads and blocks for rows."""

from __future__ import annotations


def warps_for(lanes: int, most: int) -> int:
    """Threads for so much work, whole warps, `most` at most."""
    return min(most, -(-lanes // 32) * 32)


def columns_of(width: int) -> tuple[int, int]:
    """Threads of a block and blocks of a row for what treats it by units of 256 columns, a warp a unit."""
    units = -(-width // 256)
    warps = min(units, 4)
    return 32 * warps, -(-units // warps)
