"""`Sampler`: how one sequence chooses its tokens, composed once and run per token."""

from __future__ import annotations

import copy
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraint.mask import Mask
from ..constraint.matcher import Matcher
from .breakers import Breakers, Spell
from .candidates import MOST_SELECTED, Best, Candidates, Select, best_of, draw, only_of
from .chain import SAMPLERS, chain
from .dry import Repetitions, longest_counted
from .logit_bias import LogitBias
from .logprobs import TokenLogprobs, read
from .mirostat import Mirostat
from .params import SamplingParams
from .uniform import fresh_seed, uniform
from .whole_row import draw_from_row
from .window import PenaltyWindow

SPARE = 64
"""How many more of the best are looked at where a mask may forbid some."""


class Sampler:
    """Chooses the tokens of one sequence.

    `seed` is the one in use, drawn where `params` has none; `select` is the executable's `top_k`; `spell` gives a
    token's bytes, for the texts that break repetitions. Of a row `sample` looks at no more than the `selects` best,
    where that is not 0. What it draws depends on the tokens before, the row, the seed and the index alone; only
    `accept` changes what later tokens depend on. One thread at a time calls them.
    """

    def __init__(
        self,
        params: SamplingParams,
        select: Select,
        *,
        prompt: NDArray[np.integer[Any]],
        capacity: int,
        spell: Spell = lambda token: b"",
        matcher: Matcher | None = None,
    ) -> None:
        self.params = params
        self.matcher = matcher
        self.select = select
        self.seed = fresh_seed() if params.seed is None else params.seed
        self.index = 0
        self.window: PenaltyWindow | None = None
        self.repetitions: Repetitions | None = None
        self.mirostat: Mirostat | None = None
        self.last_logprobs: TokenLogprobs | None = None
        if params.penalises:
            length = _length(params.penalty_last_n, capacity)
            self.window = PenaltyWindow(length, prompt[-length:].tolist())
        if params.breaks_repetitions:
            breakers = Breakers(params.dry_sequence_breakers, spell)
            length = _length(params.dry_penalty_last_n, capacity)
            self.repetitions = Repetitions(length, prompt, breakers, longest_counted(params))
        if params.mirostat and not params.greedy:
            self.mirostat = Mirostat(params.mirostat, params.mirostat_tau, params.mirostat_eta)
        self._bias = LogitBias(params.logit_bias) if params.logit_bias else None
        self._steps = chain(params)
        self._writes = any(it is not None for it in (self._bias, self.window, self.repetitions))
        self.selects = self._selects()
        self._best_decides = params.greedy and self.selects == 1 and not self._writes

    def fork(self, seed: int | None = None) -> Sampler:
        """A copy that has seen the same tokens and goes its own way; with the same seed where none is given."""
        twin = copy.copy(self)
        twin.seed = self.seed if seed is None else seed
        twin.window = self.window and self.window.fork()
        twin.repetitions = self.repetitions and self.repetitions.fork()
        twin.mirostat = self.mirostat and self.mirostat.fork()
        twin.matcher = self.matcher and self.matcher.fork()
        return twin

    def sample(self, logits: NDArray[np.float32], index: int, best: Best | None = None) -> int:
        """A token for the row f32[V], which may be changed; `index` is the place the token will take.

        `best` is what `select` gives for the row and `selects`, where somebody knows it already. Afterwards
        `last_logprobs` are the token's, where `params.logprobs` asks for them. Raises `RequestError` where the best
        logit is not a finite number, and for a function of the caller that fails.
        """
        self.index = index
        wanted = self.params.logprobs
        known = best if self._best_decides else None
        token = self._choose(self._start(logits, best)) if known is None else only_of(known)
        if wanted is not None:
            self.last_logprobs = read(logits, token, wanted, self.select)
        return token

    @property
    def ended(self) -> bool:
        """Whether nothing may follow."""
        return self.matcher is not None and self.matcher.ended

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next, where nobody wants to know how likely they were."""
        if self.matcher is None or self.params.logprobs is not None or self._bias is not None:
            return ()
        return self.matcher.forced()

    def prepare(self) -> None:
        """Let what the next choice needs be made meanwhile."""
        if self.matcher is not None:
            self.matcher.prepare()

    def _start(self, logits: NDArray[np.float32], best: Best | None) -> Candidates:
        if self.matcher is not None:
            return self._allowed(self.matcher.mask(), logits, best)
        if best is not None and not self._writes:
            return Candidates.best(*best)
        if best is not None:
            return Candidates.some(reduce(np.union1d, self._written(), best[0]), logits)
        kept = self.params.logprobs is not None and self._writes
        return Candidates.of_row(logits.copy() if kept else logits)

    def _allowed(self, mask: Mask, logits: NDArray[np.float32], best: Best | None) -> Candidates:
        """Those that `mask` leaves: all where they are few, else the best that decide, else the whole row."""
        if mask.few:
            return Candidates.some(mask.ids, logits)
        decide = self.selects - SPARE
        if best is not None and not self._writes:
            ids, values = mask.first(best, decide)
            if len(ids) == decide:
                return Candidates.decided(ids, values)
        elif best is not None:
            places = mask.allowed(best[0])
            if len(places) >= decide:
                return Candidates.some(mask.allowed(reduce(np.union1d, self._written(), places)), logits)
        return Candidates.of_row(mask.masked(logits))

    def accept(self, token: int) -> None:
        """Take note of the token that follows. Raises `RequestError` for a grammar that is too much to follow."""
        if self.matcher is not None:
            self.matcher.accept(token)
        if self.window is not None:
            self.window.push(token)
        if self.repetitions is not None:
            self.repetitions.push(token)
        if self.mirostat is not None:
            self.mirostat.accept(token)

    def _written(self) -> list[NDArray[np.intp]]:
        """Tokens whose logits the first steps change."""
        biased = [] if self._bias is None else [self._bias.ids]
        return biased if self.window is None else [*biased, self.window.ids]

    def _selects(self) -> int:
        """The best that decide, and as many more as tokens may fall from among them."""
        if self.mirostat is not None or self.repetitions is not None:
            return 0
        cutting = self._steps[1:] if self._steps[:1] == [SAMPLERS["penalties"].run] else self._steps
        if self.params.greedy and not cutting:
            most = 1
        elif cutting[:1] == [SAMPLERS["top_k"].run]:
            most = self.params.top_k
        else:
            return 0
        most += 0 if self._bias is None else len(self._bias.ids)
        most += 0 if self.window is None else self.window.length
        most += 0 if self.matcher is None else SPARE
        return most if most <= MOST_SELECTED else 0

    def _choose(self, candidates: Candidates) -> int:
        if self._bias is not None:
            candidates = self._bias.add(candidates)
        for step in self._steps:
            candidates = step(candidates, self)
        if self.params.greedy:
            return int(best_of(candidates, 1, self.select).ids[0])
        if self.mirostat is not None:
            candidates = self.mirostat.cut(candidates, self.select)
        u = uniform(self.seed, self.index)
        if candidates.ranked:
            return draw(candidates, u)
        return int(candidates.ids[draw_from_row(np.asarray(candidates.logits), u)])


def _length(last_n: int, capacity: int) -> int:
    return capacity if last_n < 0 else min(last_n, capacity)
