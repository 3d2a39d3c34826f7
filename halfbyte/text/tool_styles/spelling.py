"""`Spelling`: the texts around the names and arguments of calls, as a model writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .deltas import Call


@dataclass(frozen=True)
class Spelling:
    """One call is `opens NAME arguments ARGUMENTS closes`; several stand between `first` and `last`, with `between`.

    `form`: what arguments are. `quote`: what stands around strings in the form "quoted".
    """

    opens: str
    arguments: str
    closes: str = ""
    first: str = ""
    between: str = ""
    last: str = ""
    form: Literal["json", "quoted", "python", "tags"] = "json"
    quote: str = ""

    def write(self, calls: Sequence[Call]) -> str:
        """Calls as text; for arguments that are JSON."""
        assert self.form == "json"
        each = [f"{self.opens}{call.name}{self.arguments}{call.arguments}{self.closes}" for call in calls]
        return self.first + self.between.join(each) + self.last
