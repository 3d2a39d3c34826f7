"""`Pace`: how much of a prompt is read beside answers without holding them up."""

from __future__ import annotations

TILE = 16
"""Tokens that matrix kernels take at a time: a step of fewer costs as much."""
TRUST = 32
"""Steps after which the time of a step without prompts is measured again."""
WEIGHT = 0.5
"""Of the newest measurement in an average."""


class Pace:
    """Learns from steps and says how many tokens of prompts the next may have.

    A step that reads prompts beside answers shall take at most `stretch` times one without. Nothing but the size of
    chunks depends on it, and results do not depend on the size of chunks.
    """

    def __init__(self, stretch: float) -> None:
        self._stretch = stretch
        self._alone: dict[int, float] = {}
        self._age = 0
        self._per_token: float | None = None

    def prompt_tokens(self, num_answers: int) -> int | None:
        """Most tokens of prompts in a step that has `num_answers` answers; None is as many as fit.

        Sometimes 0: then a step without is measured.
        """
        if num_answers == 0 or self._stretch == float("inf"):
            return None
        alone = self._alone.get(num_answers)
        if alone is None or self._age >= TRUST:
            return 0
        if self._per_token is None:
            return 2 * TILE - num_answers % TILE
        most = int((self._stretch - 1) * alone / self._per_token)
        whole = (most + num_answers) // TILE * TILE - num_answers
        return max(whole, TILE)

    def note(self, num_answers: int, num_prompt: int, seconds: float) -> None:
        """Learn from a step that took `seconds`."""
        if num_answers == 0:
            return
        if num_prompt == 0:
            before = self._alone.get(num_answers, seconds)
            self._alone[num_answers] = before + WEIGHT * (seconds - before)
            self._age = 0
            return
        self._age += 1
        alone = self._alone.get(num_answers)
        if alone is not None:
            cost = max(seconds - alone, 0.02 * seconds) / num_prompt
            before = self._per_token or cost
            self._per_token = before + WEIGHT * (cost - before)
