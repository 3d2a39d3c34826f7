"""`StepTimes`: what a step takes by the number of drafts in it, learnt from steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WEIGHT = 0.25
"""Of the newest measurement in an average."""
OUTLIER = 2.0
"""A measurement counts as at most so many times what was expected: a machine hiccups."""
CALM = 6
"""Steps without drafts after which one is as fast as if there had never been any: wide steps cost a CPU its clock."""
TRUST = 32
"""Steps with drafts after which one without is due."""
STALE = 512
"""Steps after which a time that was not measured again is forgotten: perhaps it was bad luck."""
SLOPE = 0.5
"""Time of a draft, in that of an answer's token, while nothing is known."""


class StepTimes:
    """Of steps with one number of answers.

    A step without drafts that comes soon after one with drafts counts only where it was fast, and then at once, so that
    drafts are compared with how it would be without any. Where that leaves a time of long ago, drafts seem to pay less;
    then there are none for a while, and it is measured again.
    """

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._times: dict[int, float] = {}
        self._noted_at: dict[int, int] = {}
        self._now = 0
        self._calm = CALM
        self._since = 0

    @property
    def base(self) -> float | None:
        """Seconds of a step without drafts; None where it should be measured."""
        return None if self._since >= TRUST else self._times.get(0)

    @property
    def calm(self) -> bool:
        """Whether drafts no longer matter to the next step without any."""
        return self._calm >= CALM

    def note(self, drafts: int, seconds: float) -> None:
        """Learn from a step."""
        self._now += 1
        before = self._times.get(drafts)
        if before is None:
            likely = float(self.curve(drafts)[drafts]) if self._times else seconds
            self._times[drafts] = min(seconds, OUTLIER * likely)
        elif drafts or self.calm:
            self._times[drafts] = before + WEIGHT * (min(seconds, OUTLIER * before) - before)
        else:
            self._times[drafts] = min(before, seconds)
        self._noted_at[drafts] = self._now
        self._calm = 0 if drafts else self._calm + 1
        self._since = self._since + 1 if drafts else 0

    def least(self) -> float:
        """Seconds of a step with drafts, at the least."""
        base = self._times[0]
        if len(self._times) == 1:
            return base + SLOPE * base / self._answers
        first, *others = sorted(self._times)[1:]
        return min(base + (self._times[first] - base) / first, *(self._times[n] for n in (first, *others)))

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
