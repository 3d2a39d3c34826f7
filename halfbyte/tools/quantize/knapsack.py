"""`choose`: one option for each item, so that the sum of costs is least and that of sizes within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CELLS = 50_000
"""Steps that the budget is counted in: sizes are rounded up to a step."""


@dataclass(frozen=True)
class Option:
    """What choosing it takes (bytes, say) and what it does harm."""

    size: int
    cost: float


def choose(items: Sequence[Sequence[Option]], budget: int) -> list[int] | None:
    """Index of the option of each item; None where even the smallest do not fit.

    Least cost of all choices whose rounded sizes fit, by dynamic programming: `best[c]` is the least cost of the items
    so far in c cells. What rounding has left over is spent where it does most good.
    """
    smallest = [min(option.size for option in options) for options in items]
    spare = budget - sum(smallest)
    if spare < 0:
        return None
    cell = max(1, -(-spare // CELLS))
    cells = spare // cell
    best = np.zeros(cells + 1)
    chosen = np.empty((len(items), cells + 1), np.uint8)
    for number, options in enumerate(items):
        costs = np.full((len(options), cells + 1), np.inf)
        for which, option in enumerate(options):
            width = -(-(option.size - smallest[number]) // cell)
            if width <= cells:
                costs[which, width:] = best[: cells + 1 - width] + option.cost
        chosen[number] = costs.argmin(axis=0)
        best = costs.min(axis=0)
    found = [0] * len(items)
    at = cells
    for number in reversed(range(len(items))):
        found[number] = int(chosen[number, at])
        at -= -(-(items[number][found[number]].size - smallest[number]) // cell)
    return _spend(items, found, budget)


def _spend(items: Sequence[Sequence[Option]], found: list[int], budget: int) -> list[int]:
    """Better options as long as one fits into what is left, the most gain for its bytes first."""
    left = budget - sum(options[which].size for options, which in zip(items, found, strict=True))
    while True:
        moves = [
            ((now.cost - option.cost) / max(1, option.size - now.size), number, which)
            for number, options in enumerate(items)
            for now in (options[found[number]],)
            for which, option in enumerate(options)
            if option.cost < now.cost and option.size - now.size <= left
        ]
        if not moves:
            return found
        _, number, which = max(moves)
        left -= items[number][which].size - items[number][found[number]].size
        found[number] = which
