"""`StepPlan`: which tokens of which sequences one step computes; `BatchBuilder` turns it into a `StepBatch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.program import StepBatch
from .sequence import Sequence


class Share(NamedTuple):
    """Tokens of `sequence` from its first uncomputed one on; logits of the last `num_rows` of them are wanted."""

    sequence: Sequence
    num_tokens: int
    num_rows: int


@dataclass(frozen=True)
class StepPlan:
    """What one step computes. A sequence that wants the logits of every token has a step to itself."""

    shares: list[Share]

    @property
    def num_tokens(self) -> int:
        """Tokens the step computes."""
        return sum(share.num_tokens for share in self.shares)


class BatchBuilder:
    """Writes plans into arrays made once: no allocation and no Python per token of context."""

    def __init__(self, *, context: int, page_len: int, max_tokens: int, max_seqs: int) -> None:
        self._page_len = page_len
        self._ramp = np.arange(max(context, max_tokens), dtype=np.int32)
        self._page_index, self._offset = np.divmod(self._ramp, np.int32(page_len))
        self._ids = np.zeros(max_tokens, np.int32)
        self._positions = np.zeros(max_tokens, np.int32)
        self._seq_of = np.zeros(max_tokens, np.int32)
        self._slots = np.zeros(max_tokens, np.int32)
        self._logit_rows = np.zeros(max_tokens, np.int32)
        self._page_table = np.full((max_seqs, -(-context // page_len)), -1, np.int32)
        self._seq_len = np.zeros(max_seqs, np.int32)
        self._view = self._cut(0, 0, 0)

    def build(self, plan: StepPlan) -> StepBatch:
        """The batch of `plan`, valid until the next call."""
        t = r = 0
        for s, (sequence, count, rows) in enumerate(plan.shares):
            start = sequence.num_computed
            end = start + count
            span = slice(t, t + count)
            self._ids[span] = sequence.ids[start:end]
            self._positions[span] = self._ramp[start:end]
            self._seq_of[span] = s
            self._slots[span] = self._slots_of(sequence.page_row, start, end)
            self._page_table[s, : len(sequence.page_row)] = sequence.page_row
            self._page_table[s, len(sequence.page_row) :] = -1
            self._seq_len[s] = end
            self._logit_rows[r : r + rows] = self._ramp[t + count - rows : t + count]
            t += count
            r += rows
        shape = (t, len(plan.shares), r)
        if shape != (len(self._view.ids), len(self._view.seq_len), len(self._view.logit_rows)):
            self._view = self._cut(*shape)
        return self._view

    def _slots_of(self, page_row: NDArray[np.int32], start: int, end: int) -> NDArray[np.int32]:
        slots: NDArray[np.int32] = page_row[self._page_index[start:end]] * np.int32(self._page_len)
        slots += self._offset[start:end]
        return slots

    def _cut(self, t: int, s: int, r: int) -> StepBatch:
        return StepBatch(
            ids=self._ids[:t],
            positions=self._positions[:t],
            seq_of=self._seq_of[:t],
            slots=self._slots[:t],
            page_table=self._page_table[:s],
            seq_len=self._seq_len[:s],
            logit_rows=self._logit_rows[:r],
        )
