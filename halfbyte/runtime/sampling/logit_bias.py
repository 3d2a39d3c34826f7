"""`LogitBias`: numbers added to the logits of a few tokens before anything else happens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .candidates import Candidates


class LogitBias:
    """A bias of -inf bans its token."""

    def __init__(self, biases: Mapping[int, float]) -> None:
        self.ids = np.fromiter(biases.keys(), np.intp, len(biases))
        self._biases = np.fromiter(biases.values(), np.float32, len(biases))

    def add(self, candidates: Candidates) -> Candidates:
        """The candidates with every bias added, in place where they are a whole row."""
        wanted, here = candidates.find(self.ids)
        return candidates.with_logits(here, np.asarray(candidates.logits)[here] + self._biases[wanted])
