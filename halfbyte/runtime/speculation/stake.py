"""`Stake`: what speculation may lose before it must stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHARE = 0.01
"""Of all time that may be lost."""
START = 8.0
"""Steps that may be lost at the beginning."""
MOST = 32.0
"""Steps that a stake holds at most, so that winnings of an hour ago pay for no loss of now."""


class Stake:
    """Counted in steps without drafts: grows with every step and by what drafts won, falls by what they cost.

    Whatever was expected wrongly, speculation so costs at most `SHARE` of the time in the long run.
    """

    def __init__(self) -> None:
        self._steps = START

    def allows(self, steps: NDArray[np.float64]) -> int:
        """How many of `steps`, from the first on, may each be put at risk: at least the first, which has no drafts."""
        beyond = steps > self._steps
        return max(int(beyond.argmax()), 1) if beyond.any() else len(steps)

    def note(self, won: float) -> None:
        """Record a step that won or cost `won` steps."""
        self._steps = min(self._steps + won + SHARE, MOST)
