"""`StepPlan`: which tokens of which sequences one step computes; `BatchBuilder` turns it into a `StepBatch`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..model.program import StepBatch
from .sequence import Sequence


class Share(NamedTuple):
    """Tokens of `sequence` from its first uncomputed one on; logits of the last `num_rows` of them are wanted.

    With drafts among the tokens, `num_rows` is one more than their number.
    """

    sequence: Sequence
    num_tokens: int
    num_rows: int


@dataclass
class StepPlan:
    """What one step computes, and which pages move before: first swaps out, then copies, then swaps in.

    A page that is written by one move may have been read by one before, so the order matters.
    """

    shares: list[Share] = field(default_factory=list)
    swaps_out: list[tuple[Sequence, list[int]]] = field(default_factory=list)
    """Sequences and the pages that go to their places in swap."""
    copies: list[tuple[int, int]] = field(default_factory=list)
    """(page, page)"""
    swaps_in: dict[int, tuple[Sequence, int]] = field(default_factory=dict)
    """By arrival: a sequence that comes back, and how many of its pages need no reading."""
    put_back: list[Sequence] = field(default_factory=list)
    """Sequences that lost their pages to others."""

    @property
    def num_tokens(self) -> int:
        """Tokens the step computes."""
        return sum(share.num_tokens for share in self.shares)


class BatchBuilder:
    """Writes plans into arrays made once: no allocation and no Python per token of context."""

    def __init__(self, *, context: int, page_len: int, max_tokens: int, max_seqs: int, num_adapters: int = 0) -> None:
        self._page_len = page_len
        self._ramp = np.arange(max(context, max_tokens), dtype=np.int32)
        self._ids = np.zeros(max_tokens, np.int32)
        self._positions = np.zeros(max_tokens, np.int32)
        self._seq_of = np.zeros(max_tokens, np.int32)
        self._slots = np.zeros(max_tokens, np.int32)
        self._logit_rows = np.zeros(max_tokens, np.int32)
        self._page_table = np.full((max_seqs, -(-context // page_len)), -1, np.int32)
        self._seq_len = np.zeros(max_seqs, np.int32)
        self._scales = np.zeros((max_seqs, num_adapters), np.float32) if num_adapters else None
        self._rows: list[tuple[list[int], int]] = [([], 0)] * max_seqs
        self._shape = (0, 0, 0, False)
        self._view = self._cut(*self._shape)

    def build(self, plan: StepPlan) -> StepBatch:
        """The batch of `plan`, valid until the next call; the same object as before where the shapes are."""
        t = r = 0
        for s, (sequence, num_tokens, num_rows) in enumerate(plan.shares):
            if num_tokens == 1:
                self._put_one(t, s, sequence)
            else:
                self._put_many(t, s, sequence, num_tokens)
            self._put_pages(s, sequence)
            self._seq_len[s] = sequence.num_computed + num_tokens
            t += num_tokens
            if num_rows == 1:
                self._logit_rows[r] = t - 1
            else:
                self._logit_rows[r : r + num_rows] = self._ramp[t - num_rows : t]
            r += num_rows
        shape = (t, len(plan.shares), r, self._put_scales(plan))
        if shape != self._shape:
            self._shape, self._view = shape, self._cut(*shape)
        return self._view

    def _put_scales(self, plan: StepPlan) -> bool:
        """Note how much of each adapter the sequences want; whether any wants one."""
        wanted = any(share.sequence.seed for share in plan.shares)
        if wanted:
            assert self._scales is not None, "a request chose adapters that the model was not loaded with"
            for s, (sequence, _, _) in enumerate(plan.shares):
                self._scales[s] = 0 if sequence.adapters.scales is None else sequence.adapters.scales
        return wanted

    def _put_one(self, t: int, s: int, sequence: Sequence) -> None:
        """`_put_many` of one token, at a tenth of its cost: this is what happens between two tokens of an answer."""
        at = sequence.num_computed
        self._ids[t] = sequence.ids[at]
        self._positions[t] = at
        self._seq_of[t] = s
        page, offset = divmod(at, self._page_len)
        self._slots[t] = sequence.pages[page] * self._page_len + offset

    def _put_many(self, t: int, s: int, sequence: Sequence, num_tokens: int) -> None:
        start, end = sequence.num_computed, sequence.num_computed + num_tokens
        span = slice(t, t + num_tokens)
        self._ids[span] = sequence.ids[start:end]
        self._positions[span] = self._ramp[start:end]
        self._seq_of[span] = s
        first_page = start // self._page_len
        pages = np.array(sequence.pages[first_page : -(-end // self._page_len)], np.int32)
        places = self._ramp[start - first_page * self._page_len : end - first_page * self._page_len]
        self._slots[span] = pages[places // self._page_len] * self._page_len + places % self._page_len

    def _put_pages(self, s: int, sequence: Sequence) -> None:
        """Bring row `s` of the page table up to date; a sequence that stays in its row only gets more pages."""
        pages, have = self._rows[s]
        if pages is not sequence.pages:
            self._page_table[s] = -1
            have = 0
        if have < len(sequence.pages):
            self._page_table[s, have : len(sequence.pages)] = sequence.pages[have:]
        self._rows[s] = (sequence.pages, len(sequence.pages))

    def _cut(self, t: int, s: int, r: int, adapted: bool) -> StepBatch:
        return StepBatch(
            ids=self._ids[:t],
            positions=self._positions[:t],
            seq_of=self._seq_of[:t],
            slots=self._slots[:t],
            page_table=self._page_table[:s],
            seq_len=self._seq_len[:s],
            logit_rows=self._logit_rows[:r],
            adapter_scales=self._scales[:s] if adapted and self._scales is not None else None,
        )
