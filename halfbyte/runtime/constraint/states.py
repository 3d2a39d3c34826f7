"""`States`: what may follow the tokens of a grammar, found once and kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .mask import Mask

MOST_STATES = 4096
MOST_MASKS = 256


class State:
    """What is known of one: its `mask`, the tokens `forced` next, and where each token leads."""

    __slots__ = ("forced", "mask", "next")

    def __init__(self) -> None:
        self.mask: Mask | None = None
        self.forced: tuple[int, ...] | None = None
        self.next: dict[int, State] = {}


class States:
    """States of one grammar as a tree of tokens; masks that are equal are one. For the engine's thread.

    When there are too many it begins anew; sequences keep theirs.
    """

    def __init__(self) -> None:
        self.root = State()
        self._count = 1
        self._masks: dict[bytes, Mask] = {}

    def follow(self, state: State, token: int) -> State:
        """The state behind `token`."""
        found = state.next.get(token)
        if found is None:
            found = State()
            if self._count >= MOST_STATES:
                self.root, self._count = State(), 0
            self._count += 1
            state.next[token] = found
        return found

    def mask(self, bits: NDArray[np.uint32]) -> Mask:
        """The mask of `bits`."""
        key = bits.tobytes()
        found = self._masks.get(key)
        if found is None:
            if len(self._masks) >= MOST_MASKS:
                self._masks.clear()
            found = self._masks[key] = Mask(np.frombuffer(key, np.uint32))
        return found
