"""A step's sequences in two groups: those with few new tokens, whose bits no company may change, and the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..model.program import StepBatch

FEW_TOKENS = 16
"""New tokens of a sequence with which it is decoding: one, or one and drafts, or the short rest of a prompt."""
Kind = Literal["decode", "prompt"]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Group:
    """A step of its own, and which tokens and rows of logits of the whole step it has; None is all of them."""

    kind: Kind
    batch: StepBatch
    tokens: Indices | None = None
    rows: Indices | None = None

    def index(self, asked: bool) -> Indices | slice:
        """Which rows of a value of the whole step are this group's."""
        found = self.rows if asked else self.tokens
        return slice(None) if found is None else found


def groups_of(batch: StepBatch, encoder: bool) -> list[Group]:
    """One group or two, those with few tokens first. Encoders look ahead, which only the prompts' kernels do."""
    if encoder:
        return [Group("prompt", batch)]
    if len(batch.ids) == len(batch.seq_len):
        return [Group("decode", batch)]
    few = np.bincount(batch.seq_of, minlength=len(batch.seq_len)) <= FEW_TOKENS
    if few.all() or not few.any():
        return [Group("decode" if few.all() else "prompt", batch)]
    return [_part(batch, "decode", few), _part(batch, "prompt", ~few)]


def _part(batch: StepBatch, kind: Kind, chosen: NDArray[np.bool_]) -> Group:
    """The sequences that are `chosen`, numbered anew."""
    tokens = np.flatnonzero(chosen[batch.seq_of])
    rows = np.flatnonzero(np.isin(batch.logit_rows, tokens))
    number = (np.cumsum(chosen) - 1).astype(np.int32)
    scales = batch.adapter_scales
    part = StepBatch(
        ids=batch.ids[tokens],
        positions=batch.positions[tokens],
        seq_of=number[batch.seq_of[tokens]],
        slots=batch.slots[tokens],
        page_table=batch.page_table[chosen],
        seq_len=batch.seq_len[chosen],
        logit_rows=np.searchsorted(tokens, batch.logit_rows[rows]).astype(np.int32),
        adapter_scales=None if scales is None else scales[chosen],
    )
    return Group(kind, part, tokens, rows)
