"""How it is written down which rows which expert gets: the order of a route. Runs without numba.

First come three words, then a record of two words for each expert that anyone chose (its number, its first row) and one
more whose first row is behind all; then counters that only the writer uses, then the token that each row comes from
(int32), then the row of each token's choices, one behind the other (int32).
"""

from __future__ import annotations

DEALT, ACTIVE, MOST = 0, 8, 16
"""Byte offsets: how many rows there are, how many experts have any, and the most that one has."""
RECORDS, RECORD = 32, 16
"""Where records begin, and their size."""


def counters_at(experts: int, rows: int) -> int:
    """Byte offset of the counters."""
    return RECORDS + RECORD * (experts + 1)


def sources_at(experts: int, rows: int) -> int:
    """Byte offset of the tokens that rows come from."""
    return counters_at(experts, rows) + 8 * experts


def places_at(experts: int, rows: int) -> int:
    """Byte offset of the rows that tokens' choices have."""
    return sources_at(experts, rows) + 4 * rows


def order_bytes(experts: int, rows: int) -> int:
    """Bytes of an order of up to `rows` rows."""
    return places_at(experts, rows) + 4 * rows
