"""`draft_lengths`: how many drafts of which sequence pay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log
from operator import mul

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.02
"""What drafts must win to be worth it: times are measured and chances are guessed."""


def draft_lengths(chances: Sequence[Sequence[float]], seconds: NDArray[np.float64], answers: int) -> list[int]:
    """Drafts for each sequence, given the `chances` of each of its drafts if those before it are right.

    `seconds` is what a step takes by the number of drafts in it, of all sequences together; there are never more. What
    is made large is the product of all answers' tokens a second: drafts of one sequence lengthen the steps of all, so
    they must speed it up by as much as they slow all others down together. Of drafts in order of their worth the best
    number is taken; within a sequence worth only falls, so a draft never comes without those before it.
    """
    owners = [number for number, own in enumerate(chances) for _ in own]
    worth = np.log1p([gain for own in chances for gain in _gains(own)])
    order = np.argsort(-worth, kind="stable")[: len(seconds) - 1]
    won = np.cumsum(worth[order]) - answers * np.log(seconds[1 : len(order) + 1] / seconds[0])
    lengths = [0] * len(chances)
    if len(won) and won.max() > MARGIN:
        for draft in order[: int(won.argmax()) + 1].tolist():
            lengths[owners[draft]] += 1
    return lengths


def may_pay(chances: Sequence[Sequence[float]], ratio: float, answers: int) -> bool:
    """False where `draft_lengths` would find nothing, as steps with drafts take at least `ratio` times one without.

    This is what happens between most tokens, and takes a tenth of the time.
    """
    hope = sum(log(1 + sum(accumulate(own, mul))) for own in chances if own)
    return hope - answers * log(ratio) > MARGIN


def _gains(chances: Sequence[float]) -> Iterator[float]:
    """By how much each draft raises the expected number of tokens, in parts of what it was."""
    reached = expected = 1.0
    for chance in chances:
        reached *= chance
        yield reached / expected
        expected += reached
