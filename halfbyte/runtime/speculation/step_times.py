"""`StepTimes`: what a step takes by the number of drafts in it, learnt from steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WEIGHT = 0.25
"""Of the newest measurement in an average."""
OUTLIER = 2.0
"""A measurement counts as at most so many times what was expected: a machine hiccups."""
TRUST = 64
"""Steps with drafts after which the time of a step without is measured again."""
STALE = 512
"""Steps after which a time that was not measured again is forgotten: perhaps it was bad luck."""
SLOPE = 0.5
"""Time of a draft, in that of an answer's token, while nothing is known."""


class StepTimes:
    """Of steps with one number of answers."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._times: dict[int, float] = {}
        self._noted_at: dict[int, int] = {}
        self._now = 0

    @property
    def base(self) -> float | None:
        """Seconds of a step without drafts; None where it should be measured."""
        if self._now - self._noted_at.get(0, 0) >= TRUST:
            return None
        return self._times.get(0)

    def of(self, drafts: int) -> float:
        """Seconds of a step with so many drafts, which was measured before."""
        return self._times[drafts]

    def note(self, drafts: int, seconds: float) -> None:
        """Learn from a step."""
        self._now += 1
        before = self._times.get(drafts)
        if before is None:
            self._times[drafts] = seconds
        else:
            self._times[drafts] = before + WEIGHT * (min(seconds, OUTLIER * before) - before)
        self._noted_at[drafts] = self._now

    def curve(self, most: int) -> NDArray[np.float64]:
        """Seconds by the number of drafts, 0 to `most`; between and beyond what was measured on straight lines."""
        oldest = self._now - STALE
        known = sorted(n for n, noted_at in self._noted_at.items() if n == 0 or noted_at > oldest)
        times = [self._times[n] for n in known]
        last = known[-1]
        if last < most:
            slope = max((times[-1] - times[0]) / last, 0.0) if last else SLOPE * times[0] / self._answers
            known.append(most)
            times.append(times[-1] + slope * (most - last))
        return np.interp(np.arange(most + 1), known, times)
