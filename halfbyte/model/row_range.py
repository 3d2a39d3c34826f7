"""`RowRange`: some rows of a tensor that holds several matrices one below the other, as a weight of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"(?P<tensor>.+)\[(?P<start>\d+):(?P<stop>\d+)\]")


@dataclass(frozen=True)
class RowRange:
    """Rows `start` to `stop` - 1 of `tensor`, of a bias as many of its numbers; all of them where `stop` is None."""

    tensor: str
    start: int = 0
    stop: int | None = None

    @property
    def of_bias(self) -> bool:
        """Whether numbers are counted instead of rows."""
        return self.tensor.endswith(".bias")

    @property
    def name(self) -> str:
        """What programs call it."""
        return self.tensor if self.stop is None else f"{self.tensor}[{self.start}:{self.stop}]"


def row_range(name: str) -> RowRange:
    """What a weight's name in a program means."""
    match = _NAME.fullmatch(name)
    return RowRange(name) if match is None else RowRange(match["tensor"], int(match["start"]), int(match["stop"]))
