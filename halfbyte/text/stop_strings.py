"""`StopStrings`: ends a stream of text at the first of some strings."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ConfigError


class StopStrings:
    """Text that may become a stop string is held back until it is known; stop strings are never emitted.

    Where several are found, the one that begins first counts.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        stops = [stops] if isinstance(stops, str) else list(stops)
        if not all(isinstance(stop, str) and stop for stop in stops):
            raise ConfigError(f"stop wants strings that are not empty, not {stops!r}", key="stop")
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """`(emit, stopped)`: what may be shown now, and whether a stop string was met; nothing comes after it."""
        held = self._held + text
        found = [at for stop in self._stops if (at := held.find(stop)) >= 0]
        if found:
            self._held = ""
            return held[: min(found)], True
        certain = self._certain(held)
        self._held = held[certain:]
        return held[:certain], False

    def finish(self) -> str:
        """What is still held back, when the stream has ended otherwise."""
        held, self._held = self._held, ""
        return held

    def _certain(self, held: str) -> int:
        for at in range(max(0, len(held) - self._longest + 1), len(held)):
            tail = held[at:]
            if any(stop.startswith(tail) for stop in self._stops):
                return at
        return len(held)
