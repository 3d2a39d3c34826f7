"""`EngineLimits`: how much an engine takes on."""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_DRAFTS = 15
"""Tokens that speculation may add to a step of a sequence."""


@dataclass(frozen=True)
class EngineLimits:
    """See `LoadConfig`, which is where a caller says it."""

    context: int
    max_num_seqs: int = 16
    max_num_batched_tokens: int = 512
    max_prompt_tokens: int | None = None
    max_queued: int | None = None
    prompt_stretch: float = 2.5

    @property
    def most_open(self) -> float:
        """Requests that run or wait."""
        return math.inf if self.max_queued is None else self.max_num_seqs + self.max_queued
