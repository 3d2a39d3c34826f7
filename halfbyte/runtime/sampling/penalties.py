"""Penalties for tokens that occurred lately."""

from __future__ import annotations

import numpy as np

from .candidates import Candidates
from .params import SamplingParams
from .window import PenaltyWindow


def penalties(candidates: Candidates, window: PenaltyWindow, params: SamplingParams) -> Candidates:
    """Lower the logits of the window's tokens: `repeat_penalty` divides those above 0 and multiplies the others.

    `frequency_penalty` is taken off once for each occurrence, `presence_penalty` once.
    """
    wanted, here = candidates.find(window.ids)
    seen = np.asarray(candidates.logits)[here]
    repeat = np.float32(params.repeat_penalty)
    with np.errstate(over="ignore", invalid="ignore"):
        seen = np.where(seen <= 0, seen * repeat, seen / repeat)
        seen -= window.counts[wanted] * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
    return candidates.with_logits(here, seen)
