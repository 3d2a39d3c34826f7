"""`DraftModel`: a smaller model guesses what a larger one will say."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ...model.backend import Executable
from ..cache.pages import PagePool
from ..sequence import Sequence
from ..step import BatchBuilder, Share, StepPlan
from .hit_rates import HitRates, level_of
from .shadow import Shadow

HORIZON = 128
"""Drafts that reading what was said before must pay for."""
PRIOR = (0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6)
"""How often drafts come true before anything was seen."""
LONG_MEMORY = 500.0
"""Drafts of all sequences that count for what a new one starts from."""
FADE = 0.998
"""What a step without drafts leaves of what was seen: what did not pay is tried again in the end."""
MANY = 8
"""Tokens of a sequence from which a step counts as reading."""
WEIGHT = 0.2
"""Of the newest measurement in an average."""


class DraftModel:
    """See `Proposer`. Owns `executable`, whose pages hold the sequences as the draft model sees them.

    Where those are not enough, a sequence goes without drafts. A step has at most `max_tokens` tokens of at most
    `max_seqs` sequences, of `context` tokens each.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        vocab_size: int,
        model_vocab_size: int,
        context: int,
        max_tokens: int,
        max_seqs: int,
    ) -> None:
        self._executable = executable
        self._vocab_size = vocab_size
        self._common = min(vocab_size, model_vocab_size)
        self._context = context
        self._max_tokens = max_tokens
        self._pool = PagePool(executable.n_pages, keep=False)
        self._builder = BatchBuilder(
            context=context, page_len=executable.page_len, max_tokens=max_tokens, max_seqs=max_seqs
        )
        self._logits = np.empty((max_seqs, vocab_size), np.float32)
        self._all = HitRates(LONG_MEMORY, PRIOR)
        self._shadows: dict[int, Shadow] = {}
        self._draft_s: dict[int, float] = {}
        self._read_s = 0.0

    def chances(self, sequence: Sequence, most: int) -> list[float]:
        """See `Proposer`."""
        most = min(most, self._context - sequence.num_tokens)
        shadow = self._shadow_of(sequence)
        self._pool.release(shadow.follow())
        shadow.rates.fade(FADE)
        self._all.fade(FADE)
        if most <= 0 or not shadow.able:
            return []
        return [shadow.rates.rates[level_of(n)] for n in range(most)]

    def seconds(self, sequence: Sequence, answers: int) -> float:
        """See `Proposer`. What must be read before is shared by the drafts that may come of it."""
        ahead = min(HORIZON, sequence.max_len - sequence.num_tokens)
        reading = self._read_s * self._shadows[sequence.arrival].behind / ahead
        return self._draft_s.get(answers, 0.0) / answers + reading

    def propose(self, lengths: list[tuple[Sequence, int]]) -> list[list[int]]:
        """See `Proposer`."""
        asked = [(self._shadows[sequence.arrival], length) for sequence, length in lengths]
        for shadow, _ in asked:
            shadow.begin(self._executable.top_k)
        far = [shadow for shadow, _ in asked if shadow.behind > self._max_tokens]
        if far:
            self._timed([(shadow, shadow.twin.num_computed + self._max_tokens) for shadow in far[:1]])
        drafting = [(shadow, length) for shadow, length in asked if shadow.behind <= self._max_tokens]
        for n in range(max((length for _, length in drafting), default=0)):
            self._timed([(s, s.sequence.num_tokens + n) for s, length in drafting if n < length and s.drafted(n)])
        return [shadow.drafts[:] for shadow, _ in asked]

    def learn(self, sequence: Sequence, drafted: int, accepted: int) -> None:
        """See `Proposer`."""
        shadow = self._shadows.get(sequence.arrival)
        if shadow is not None and shadow.drafts:
            shadow.learn(drafted, accepted)

    def forget(self) -> None:
        """See `Proposer`."""
        for arrival in [arrival for arrival, shadow in self._shadows.items() if shadow.sequence.gone]:
            self._pool.release(self._shadows.pop(arrival).twin.drop_pages())

    def close(self) -> None:
        """See `Proposer`."""
        self._shadows.clear()
        self._executable.close()

    def _shadow_of(self, sequence: Sequence) -> Shadow:
        shadow = self._shadows.get(sequence.arrival)
        if shadow is None:
            self.forget()
            shadow = Shadow(sequence, self._executable.page_len, self._all, self._common)
            self._shadows[sequence.arrival] = shadow
        return shadow

    def _timed(self, wanted: list[tuple[Shadow, int]]) -> None:
        tokens = sum(end - shadow.twin.num_computed for shadow, end in wanted)
        started = perf_counter()
        self._compute(wanted)
        seconds = perf_counter() - started
        if tokens > MANY * len(wanted):
            before = self._read_s or seconds / tokens
            self._read_s = _moved(before, seconds / tokens)
        elif wanted:
            self._draft_s[len(wanted)] = _moved(self._draft_s.get(len(wanted), seconds), seconds)

    def _compute(self, wanted: list[tuple[Shadow, int]]) -> None:
        """Compute tokens up to the given end of each; where that is behind all of a sequence's, draft the next.

        One that gets no pages goes without.
        """
        while wanted:
            shares: list[tuple[Shadow, Share]] = []
            later, left = [], self._max_tokens
            for shadow, end in wanted:
                twin = shadow.twin
                count = min(end - twin.num_computed, left)
                if count and not self._make_room(twin, twin.num_computed + count):
                    continue
                if twin.num_computed + count < end:
                    later.append((shadow, end))
                if count:
                    drafts = twin.num_computed + count == end >= shadow.sequence.num_tokens
                    shares.append((shadow, Share(twin, count, int(drafts))))
                    left -= count
            if not shares:
                return
            self._run(shares)
            wanted = later

    def _make_room(self, twin: Sequence, num_tokens: int) -> bool:
        """Take pages for the first `num_tokens`; False where there are not enough."""
        missing = twin.pages_for(num_tokens) - len(twin.pages)
        if missing > self._pool.available:
            self.forget()
        if missing > self._pool.available:
            return False
        twin.pages.extend(self._pool.take() for _ in range(missing))
        return True

    def _run(self, shares: list[tuple[Shadow, Share]]) -> None:
        batch = self._builder.build(StepPlan([share for _, share in shares]))
        logits = self._logits[: len(batch.logit_rows)]
        self._executable.run(batch, logits)
        row = 0
        for shadow, share in shares:
            share.sequence.num_computed += share.num_tokens
            if share.num_rows:
                shadow.draft(logits[row, : self._common])
                row += 1


def _moved(average: float, seconds: float) -> float:
    """The average after one more measurement, of which hiccups count for little."""
    return average + WEIGHT * (min(seconds, 2 * average) - average)
