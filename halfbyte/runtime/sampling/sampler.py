"""`Sampler`: the steps of one sequence, composed once and run per token."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RequestError
from . import steps
from .params import SamplingParams
from .steps import Candidates, Select
from .uniform import fresh_seed, uniform
from .window import PenaltyWindow


class Sampler:
    """Chooses the tokens of one sequence.

    `seed` is the one in use, drawn where `params` has none; `select` is the executable's `top_k`. Only the engine's
    thread calls `sample` and `accept`.
    """

    def __init__(
        self, params: SamplingParams, select: Select, *, prompt: NDArray[np.integer[Any]], capacity: int
    ) -> None:
        self.params = params
        self.select = select
        self.seed = fresh_seed() if params.seed is None else params.seed
        self.top_k = 1 if params.greedy else params.top_k
        self.window: PenaltyWindow | None = None
        if params.penalises:
            length = capacity if params.penalty_last_n < 0 else min(params.penalty_last_n, capacity)
            self.window = PenaltyWindow(length, prompt[-length:].tolist())
        names = ("penalties", "top_k") if self.top_k == 1 else tuple(SAMPLERS)
        self._steps = [SAMPLERS[name] for name in names]

    def sample(self, logits: NDArray[np.float32], index: int) -> int:
        """A token for the row f32[V], which penalties change in place; `index` is the place it will take.

        Raises `RequestError` where the best logit is not a finite number.
        """
        candidates = Candidates(_all_ids(len(logits)), logits)
        for step in self._steps:
            candidates = step(candidates, self)
        return int(candidates.ids[0]) if self.top_k == 1 else steps.draw(candidates, uniform(self.seed, index))

    def accept(self, token: int) -> None:
        """Let the penalties know of the token that was chosen."""
        if self.window is not None:
            self.window.push(token)


@lru_cache(maxsize=4)
def _all_ids(vocab_size: int) -> NDArray[np.int32]:
    return np.arange(vocab_size, dtype=np.int32)


def _penalties(candidates: Candidates, sampler: Sampler) -> Candidates:
    return candidates if sampler.window is None else steps.penalties(candidates, sampler.window, sampler.params)


def _top_k(candidates: Candidates, sampler: Sampler) -> Candidates:
    best = steps.top_k(candidates, sampler.top_k, sampler.select)
    if len(best.ids) == 0 or not math.isfinite(best.logits[0]):
        raise RequestError("the model gave no finite logit for the next token: the file's weights may be damaged")
    return best


Step = Callable[[Candidates, Sampler], Candidates]

SAMPLERS: dict[str, Step] = {
    "penalties": _penalties,
    "top_k": _top_k,
    "top_p": lambda candidates, sampler: steps.top_p(candidates, sampler.params.top_p),
    "min_p": lambda candidates, sampler: steps.min_p(candidates, sampler.params.min_p),
    "temperature": lambda candidates, sampler: steps.temperature(candidates, sampler.params.temperature),
}
"""Every step in the order it runs; where only one token can be left, the first two alone."""
