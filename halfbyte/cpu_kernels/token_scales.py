"""`TokenScales`: how much of each adapter every token of a step wants, where kernels read it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model.program import StepBatch
from .calls import Call


def program_adapters(calls: Sequence[Call]) -> int:
    """A: one more than the largest number of an adapter."""
    return max((call.adapter + 1 for call in calls if call.adapter is not None), default=0)


class TokenScales:
    """f32[A, 2, max_tokens]: of all tokens, and of the asked-for ones."""

    def __init__(self, num_adapters: int, max_tokens: int) -> None:
        self._array = np.zeros((num_adapters, 2, max_tokens), np.float32)
        self.address = self._array.ctypes.data

    def put(self, batch: StepBatch) -> None:
        """Take those of a step."""
        scales = batch.adapter_scales
        if scales is None or not len(self._array):
            return
        of = batch.seq_of
        self._array[:, 0, : len(of)] = scales[of].T
        self._array[:, 1, : len(batch.logit_rows)] = scales[of[batch.logit_rows]].T
