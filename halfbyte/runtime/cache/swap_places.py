"""`SwapPlaces`: which places of the swap file hold a page."""

from __future__ import annotations

from collections.abc import Iterable


class SwapPlaces:
    """Numbers of `count` places, the lowest free one first, so that the file stays short. Used by one thread."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._grown = 0
        self._free: list[int] = []

    @property
    def available(self) -> int:
        """Places that `take` can hand out."""
        return self.count - self._grown + len(self._free)

    @property
    def used(self) -> int:
        """Places that hold a page."""
        return self._grown - len(self._free)

    def take(self) -> int:
        """A place."""
        assert self.available, "take() without an available place"
        if self._free:
            return self._free.pop()
        self._grown += 1
        return self._grown - 1

    def release(self, places: Iterable[int]) -> None:
        """Take places back."""
        self._free.extend(sorted(places, reverse=True))

    def check_integrity(self, used: Iterable[int]) -> None:
        """Raise `AssertionError` unless exactly `used` places are used."""
        used = sorted(used)
        assert len(set(used)) == len(used), "a place holds two pages"
        assert sorted([*self._free, *used]) == list(range(self._grown)), "a place is lost"
