"""Steps of whole texts, as encoders need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..model.program import StepBatch


def pack(lengths: Sequence[int], max_tokens: int, max_seqs: int) -> Iterator[list[int]]:
    """Texts that go together, by their numbers, in order: as many as fit. None is longer than `max_tokens`."""
    chosen: list[int] = []
    room = max_tokens
    for index, length in enumerate(lengths):
        if chosen and (length > room or len(chosen) == max_seqs):
            yield chosen
            chosen, room = [], max_tokens
        chosen.append(index)
        room -= length
    if chosen:
        yield chosen


def step_of(texts: Sequence[Sequence[int]], page_len: int, rows: str = "all") -> tuple[StepBatch, list[int]]:
    """One step of `texts`, each on fresh pages from page 0 on, and how many asked-for rows each has.

    `rows`: those of "all" tokens of a text, of the first ("cls") or of the "last".
    """
    lengths = np.array([len(ids) for ids in texts], np.int32)
    pages = -(-lengths // page_len)
    first_page = np.cumsum(pages) - pages
    starts = np.cumsum(lengths) - lengths
    seq_of = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    positions = (np.arange(len(seq_of)) - starts[seq_of]).astype(np.int32)
    numbers = np.arange(pages.max(), dtype=np.int32)
    table = np.where(numbers < pages[:, None], first_page[:, None] + numbers, -1).astype(np.int32)
    asked = {"all": np.arange(len(seq_of)), "cls": starts, "last": starts + lengths - 1}[rows]
    batch = StepBatch(
        ids=np.concatenate([np.asarray(ids, np.int32) for ids in texts]),
        positions=positions,
        seq_of=seq_of,
        slots=(first_page[seq_of] * page_len + positions).astype(np.int32),
        page_table=table,
        seq_len=lengths,
        logit_rows=asked.astype(np.int32),
    )
    return batch, lengths.tolist() if rows == "all" else [1] * len(texts)
