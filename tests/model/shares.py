"""Shares of a program on executables, which take turns as a step has it."""

from __future__ import annotations

import numpy as np

from halfbyte.model.reference import ReferenceExecutable


class TakingTurns:
    """Runs the shares of a cut one after the other, as plainly as it can be said; `sides` are their executables."""

    def __init__(self, pieces, sides):
        self.pieces, self.sides = pieces, sides
        self.page_len = next(iter(sides.values())).page_len

    def run(self, batch, logits):
        for place, side in self.sides.items():
            side.begin(batch, logits if self.pieces.shares[place].program.logits else None)
        for place, number in self.pieces.order:
            for name in self.pieces.shares[place].stages[number].receives:
                (other,) = (side for at, side in self.sides.items() if at != place)
                self.sides[place].receive(name)[:] = other.sent(name)
            self.sides[place].run_stage(number)
        for side in self.sides.values():
            side.finish()


def reference_of(share, weights, n_pages=12, **choices):
    return ReferenceExecutable(share.program, weights, n_pages=n_pages, stages=share.stages, **choices)


def on_references(pieces, weights, n_pages=12, **choices):
    return TakingTurns(
        pieces,
        {place: reference_of(share, weights, n_pages, **choices) for place, share in pieces.shares.items()},
    )


def random_places(program, rng, runs=4):
    """Places in a few runs, so that some ops are with their neighbours."""
    turns = np.sort(rng.integers(0, len(program.ops) + 1, runs))
    first = int(rng.integers(2))
    return [("cpu", "gpu")[(int(np.searchsorted(turns, i, "right")) + first) % 2] for i in range(len(program.ops))]
