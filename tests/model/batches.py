"""`StepBatch`es made by hand, for whoever runs an executable without a scheduler."""

from __future__ import annotations

import numpy as np

from halfbyte.model.program import StepBatch


def i32(values):
    return np.asarray(values, np.int32)


def step(sequences, page_len, rows=None):
    """One step of several sequences, each `(ids, start, pages)`: new ids, position of the first, pages it owns.

    `rows` are the asked-for tokens of the step; all of them by default.
    """
    width = max(len(pages) for _, _, pages in sequences)
    ids, positions, seq_of, slots, lengths = [], [], [], [], []
    for s, (new, start, pages) in enumerate(sequences):
        where = start + np.arange(len(new))
        ids.extend(new)
        positions.extend(where)
        seq_of.extend([s] * len(new))
        slots.extend(np.asarray(pages)[where // page_len] * page_len + where % page_len)
        lengths.append(start + len(new))
    table = [list(pages) + [-1] * (width - len(pages)) for _, _, pages in sequences]
    rows = range(len(ids)) if rows is None else rows
    return StepBatch(i32(ids), i32(positions), i32(seq_of), i32(slots), i32(table), i32(lengths), i32(rows))


def whole_prompt_batches(ids, page_len, chunks, pages=None, rows="all"):
    """The steps that compute `ids` from nothing, `chunks[i]` tokens in step i; the last size repeats to the end.

    `pages` default to 0, 1, ...; `rows` is "all", or "last" for the last token of each step.
    """
    pages = range(-(-len(ids) // page_len)) if pages is None else pages
    start, sizes = 0, list(chunks)
    while start < len(ids):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        part = ids[start : start + size]
        yield step([(part, start, list(pages))], page_len, None if rows == "all" else [len(part) - 1])
        start += len(part)


def run_all(executable, batches, n_vocab):
    """Logits f32[R, V] of all batches, one below the other."""
    parts = []
    for batch in batches:
        logits = np.full((len(batch.logit_rows), n_vocab), np.nan, np.float32)
        executable.run(batch, logits)
        parts.append(logits)
    return np.concatenate(parts)


CHUNKS = (7, 3, 16)


def run_side_by_side(executable, prompts, n_vocab, chunks=CHUNKS):
    """Logits f32[T, V] of each prompt: in every step all that are not done, each by chunks of its own size."""
    page_len, pages, done = executable.page_len, [], [0] * len(prompts)
    for ids in prompts:
        first = sum(map(len, pages))
        pages.append(list(range(first, first + -(-len(ids) // page_len))))
    logits = [np.full((len(ids), n_vocab), np.nan, np.float32) for ids in prompts]
    while left := [s for s, ids in enumerate(prompts) if done[s] < len(ids)]:
        parts = [(prompts[s][done[s] : done[s] + chunks[s % len(chunks)]], done[s], pages[s]) for s in left]
        out = run_all(executable, [step(parts, page_len)], n_vocab)
        for s, (new, start, _) in zip(left, parts, strict=True):
            logits[s][start : start + len(new)], out = out[: len(new)], out[len(new) :]
            done[s] += len(new)
    return logits
