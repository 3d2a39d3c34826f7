"""`Pace`: how much of a prompt is read beside answers without holding them up."""

from __future__ import annotations

from .chunk_cost import ChunkCost

TILE = 16
"""Tokens that matrix kernels take at a time: a step of fewer costs as much."""
TRUST = 32
"""Steps after which the time of a step without prompts is measured again."""
TRIAL = 8
"""Steps with prompts after which one of another size is tried: two sizes tell what a step costs whatever its size."""
WEIGHT = 0.5
"""Of the newest measurement in an average."""


class Pace:
    """Learns from steps and says how many tokens of prompts the next may have.

    A step that reads prompts beside answers shall take at most `stretch` times one without. Where reading anything at
    all costs more than that, it reads what doubles this cost: less would take as many steps longer as it saves. Nothing
    but the size of chunks depends on it, and results do not depend on the size of chunks.
    """

    def __init__(self, stretch: float) -> None:
        self._stretch = stretch
        self._alone: dict[int, float] = {}
        self._age = 0
        self._reads = 0
        self._cost = ChunkCost()

    def prompt_tokens(self, num_answers: int) -> int | None:
        """Most tokens of prompts in a step that has `num_answers` answers; None is as many as fit.

        Sometimes 0: then a step without is measured.
        """
        if num_answers == 0 or self._stretch == float("inf"):
            return None
        alone = self._alone.get(num_answers)
        if alone is None or self._age >= TRUST:
            return 0
        if not self._cost.known:
            return _whole(2 * TILE, num_answers)
        base, per_token = self._cost.fit()
        seconds = max((self._stretch - 1) * alone - base, base)
        most = min(int(seconds / per_token), int(4 * self._cost.largest))
        if self._reads % TRIAL == TRIAL - 1:
            most = most // 2 if most >= 2 * TILE else 2 * TILE
        return _whole(most, num_answers)

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
        self._reads += 1
        alone = self._alone.get(num_answers)
        if alone is not None:
            self._cost.note(num_prompt, max(seconds - alone, 0.02 * seconds))


def _whole(most: int, num_answers: int) -> int:
    """Tokens that fill tiles together with the answers, at least about one."""
    return max((most + num_answers) // TILE * TILE - num_answers, TILE)
