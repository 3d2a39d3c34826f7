"""`Shadow`: a sequence as a draft model sees it."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from ..sampling.candidates import Select
from ..sampling.sampler import Sampler
from ..sequence import Sequence
from .hit_rates import HitRates, level_of

MEMORY = 40.0
"""Drafts of a sequence that count for how likely the next are right."""


class Shadow:
    """A twin with the same tokens, which it reads where `sequence` has them, and pages of the draft model's own.

    Drafts are written where those of a sequence stand: behind its tokens. A token drawn for a place depends on logits,
    seed and place alone, so the twin's sampler, a copy of the sequence's, errs only where the draft model does.

    Not `able` where the sampler calls a function of the caller, which may count its calls, or where a token or a bias
    is beyond the first `vocab_size`, which both models have.
    """

    def __init__(self, sequence: Sequence, page_len: int, of_all: HitRates, vocab_size: int) -> None:
        assert sequence.sampler is not None
        self.sequence = sequence
        self.rates = HitRates(MEMORY, of_all.rates)
        self._of_all = of_all
        self.twin = Sequence(
            sequence.ids[:1], max_len=sequence.max_len, page_len=page_len, sampler=sequence.sampler, eog_ids=frozenset()
        )
        self.twin.ids = sequence.ids
        self.drafts: list[int] = []
        params = sequence.sampler.params
        self.able = (
            not any(callable(step) for step in params.samplers) and max(params.logit_bias, default=0) < vocab_size
        )
        self._vocab_size = vocab_size
        self._seen = 0
        self._from = 0
        self._sampler: Sampler | None = None

    @property
    def behind(self) -> int:
        """Tokens that the draft model has not computed."""
        return self.sequence.num_tokens - self.twin.num_computed

    def follow(self) -> list[int]:
        """Take in what came: of the drafts, those behind the first that did not are worthless.

        The pages that are no longer needed.
        """
        fresh = self.sequence.ids[self._seen : self.sequence.num_tokens]
        self._seen += len(fresh)
        if len(fresh) and int(fresh.max()) >= self._vocab_size:
            self.able = False
        if self.drafts:
            pairs = zip(self.sequence.ids[self._from : self._seen].tolist(), self.drafts, strict=False)
            agreeing = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            self.twin.num_computed = min(self.twin.num_computed, self._from + agreeing)
            self.drafts = []
        return self.twin.trim_pages()

    def begin(self, select: Select) -> None:
        """Get ready to draft behind the tokens there are."""
        assert self.sequence.sampler is not None
        self._from, self.drafts = self.sequence.num_tokens, []
        self._sampler = self.sequence.sampler.fork()
        self._sampler.select = select
        if self._sampler.params.logprobs is not None:
            self._sampler.params = replace(self._sampler.params, logprobs=None)

    def draft(self, row: NDArray[np.float32]) -> None:
        """Add the token that the draft model's logits f32[V] say."""
        assert self._sampler is not None
        place = self._from + len(self.drafts)
        token = self._sampler.sample(row, place)
        self._sampler.accept(token)
        self.drafts.append(token)
        self.twin.ids[place] = token

    def drafted(self, count: int) -> bool:
        """Whether so many drafts were made and something can follow them."""
        return len(self.drafts) == count and not self.sequence.eog_ids.intersection(self.drafts[-1:])

    def learn(self, drafted: int, accepted: int) -> None:
        """Hear how many drafts came true."""
        for n in range(min(accepted + 1, drafted)):
            self.rates.note(level_of(n), n < accepted)
            self._of_all.note(level_of(n), n < accepted)
