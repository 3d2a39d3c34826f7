"""`Windows`: a text cut into runs of equal length, each read from an empty context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError

SHORTEST = 8
"""Tokens of a window below which too few are scored for a standard error."""


@dataclass(frozen=True)
class Windows:
    """Whole windows of `length` tokens of `ids` i32[N]; what is left at the end is not scored.

    The first half of a window is only read, so that every scored token has some context. `bos_id` replaces the first
    token of every window, None leaves it. The rules are those of llama-perplexity, whose figures can so be compared.
    """

    ids: NDArray[np.int32]
    length: int
    bos_id: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        count = len(self.ids)
        if self.length < SHORTEST:
            raise ConfigError(f"a window must have {SHORTEST} tokens or more, not {self.length}", key="window")
        if count < self.length:
            hint = f", or take a smaller window, at most {count}" if count >= SHORTEST else ""
            raise ConfigError(
                f"the text has {count} tokens, fewer than one window of {self.length}: give a longer text{hint}",
                key="window",
            )

    @property
    def first(self) -> int:
        """The first token of a window whose prediction of the next one is scored."""
        return self.length // 2

    @property
    def scored(self) -> int:
        """Predictions scored in a window."""
        return self.length - 1 - self.first

    def __len__(self) -> int:
        whole = len(self.ids) // self.length
        return whole if self.most is None else min(whole, self.most)

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        for number in range(len(self)):
            ids = self.ids[number * self.length : (number + 1) * self.length].copy()
            if self.bos_id is not None:
                ids[0] = self.bos_id
            yield ids
