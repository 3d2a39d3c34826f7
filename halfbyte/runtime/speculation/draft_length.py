"""`draft_lengths`: how many drafts of which sequence pay."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

MARGIN = 0.02
"""What drafts must win to be worth it: times are measured and chances are guessed."""


def draft_lengths(chances: Sequence[Sequence[float]], seconds: Sequence[float], answers: int) -> list[int]:
    """Drafts for each sequence, given the `chances` of each of its drafts if those before it are right.

    `seconds` is what a step takes by the number of drafts in it, of all sequences together; there are never more. What
    is made large is the product of all answers' tokens a second: drafts of one sequence lengthen the steps of all, so
    they must speed it up by as much as they slow all others down together. Of drafts in order of their worth the best
    number is taken; within a sequence worth only falls, so a draft never comes without those before it.
    """
    worth: list[tuple[float, int]] = []
    for number, own in enumerate(chances):
        reached = expected = 1.0
        for chance in own:
            reached *= chance
            worth.append((log(1 + reached / expected), number))
            expected += reached
    worth.sort(key=lambda draft: -draft[0])
    gain, best, count = 0.0, MARGIN, 0
    for n, ((more, _), taken) in enumerate(zip(worth, seconds[1:], strict=False), 1):
        gain += more
        won = gain - answers * log(taken / seconds[0])
        if won > best:
            best, count = won, n
    lengths = [0] * len(chances)
    for _, number in worth[:count]:
        lengths[number] += 1
    return lengths
