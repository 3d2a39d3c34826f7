"""`StepTimes`: what a step takes by the number of drafts in it, learnt from steps."""

from __future__ import annotations

from itertools import pairwise

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
        self._curve: list[float] = []

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
        self._curve = []

    def curve(self, most: int) -> list[float]:
        """Seconds by the number of drafts, 0 to `most`; between and beyond what was measured on straight lines."""
        if len(self._curve) <= most:
            self._curve = self._lines(most)
        return self._curve

    def _lines(self, most: int) -> list[float]:
        known = sorted(n for n in self._times if n == 0 or self._now - self._noted_at[n] < STALE)
        base = self._times[0]
        curve = [base]
        for low, high in pairwise(known):
            step = (self._times[high] - self._times[low]) / (high - low)
            curve += [self._times[low] + step * n for n in range(1, high - low + 1)]
        last = known[-1]
        slope = max((curve[-1] - base) / last, 0.0) if last else SLOPE * base / self._answers
        curve += [curve[-1] + slope * n for n in range(1, most - last + 1)]
        return curve
