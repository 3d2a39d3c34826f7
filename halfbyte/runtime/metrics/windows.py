"""`LastValues` and `Rate`: the recent past in constant memory, written by one thread and read by any."""

from __future__ import annotations

from array import array
from collections import deque

from .metrics import Percentiles

MOST_VALUES = 4096
"""Values that percentiles are taken of."""
RATE_S = 10
"""Seconds that a rate is taken of."""


class LastValues:
    """The last `MOST_VALUES` numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._ring = array("d", bytes(8 * MOST_VALUES))

    def add(self, value: float) -> None:
        """The newest replaces the oldest."""
        self._ring[self.count % MOST_VALUES] = value
        self.count += 1

    def percentiles(self) -> Percentiles:
        """Of what is kept; each is a value that occurred."""
        count = self.count
        values = sorted(self._ring[: min(count, MOST_VALUES)])
        if not values:
            return Percentiles(0.0, 0.0, 0.0, 0)
        p50, p90, p99 = (values[(len(values) - 1) * share // 100] for share in (50, 90, 99))
        return Percentiles(p50, p90, p99, count)


class Rate:
    """How many a second, lately. Times are seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._buckets: deque[list[int]] = deque(maxlen=RATE_S + 1)

    def add(self, count: int, now: float) -> None:
        """Count `count` at the time `now`."""
        second = int(now)
        if self._buckets and self._buckets[-1][0] == second:
            self._buckets[-1][1] += count
        else:
            self._buckets.append([second, count])

    def per_second(self, now: float) -> float:
        """Over the last `RATE_S` seconds, or since the first count where that is less, at least over one."""
        recent = [(second, count) for second, count in list(self._buckets) if second > now - RATE_S]
        return sum(count for _, count in recent) / max(now - recent[0][0], 1.0) if recent else 0.0
