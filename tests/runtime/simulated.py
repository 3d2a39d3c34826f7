"""A scheduler whose steps are made up: pages hold the tokens they stand for, so that a wrong page shows at once."""

from __future__ import annotations

import numpy as np

from halfbyte.runtime.cache.pages import PagePool
from halfbyte.runtime.cache.swap_places import SwapPlaces
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.runtime.sampling.sampler import Sampler
from halfbyte.runtime.scheduler import Scheduler
from halfbyte.runtime.sequence import Sequence

PAGE_LEN = 4
N_PAGES = 6
CONTEXT = N_PAGES * PAGE_LEN
END = 99


def sampler(prompt) -> Sampler:
    return Sampler(SamplingParams(), lambda logits, k: None, prompt=prompt, capacity=CONTEXT)


def growing(length: int, answer: int = 1, token: int = 1, **more) -> Sequence:
    prompt = np.full(length, token, np.int32)
    return Sequence(
        prompt,
        max_len=min(length + answer, CONTEXT),
        page_len=PAGE_LEN,
        eog_ids=frozenset([END]),
        sampler=sampler(prompt),
        **more,
    )


def forked(origin: Sequence, num_tokens: int, answer: int = 3) -> Sequence:
    return origin.fork(
        num_tokens,
        max_len=min(num_tokens + answer, CONTEXT),
        sampler=sampler(origin.ids[:num_tokens]),
        priority=0,
        submitted_at=0.0,
    )


def counts(plan) -> list[int]:
    """Tokens of each share."""
    return [share.num_tokens for share in plan.shares]


class Nobody:
    def read(self, start, rows):
        raise AssertionError("nobody computes logits here")


def reading(length: int) -> Sequence:
    return Sequence(np.ones(length, np.int32), max_len=length, page_len=PAGE_LEN, reader=Nobody())


class Simulation:
    """Runs plans over pages of tokens; checks what must hold for any."""

    def __init__(self, *, seqs=3, budget=8, keep=True, n_pages=N_PAGES, swap=0, read_rows=64) -> None:
        self.seqs, self.budget = seqs, budget
        self.scheduler = Scheduler(
            PagePool(n_pages, keep=keep),
            max_num_seqs=seqs,
            max_num_batched_tokens=budget,
            max_read_rows=read_rows,
            swap=SwapPlaces(swap),
        )
        self.pages = np.zeros((n_pages, PAGE_LEN), np.int32)
        self.swap = np.zeros((swap, PAGE_LEN), np.int32)

    def add(self, *sequences):
        for sequence in sequences:
            self.scheduler.add(sequence)

    @property
    def idle(self):
        return self.scheduler.idle

    def step(self, token=1, *, confirmed=0, prompt_tokens=None):
        """One step in which every asked-for row yields `token`, behind `confirmed` drafts at most."""
        plan = self.scheduler.schedule(prompt_tokens)
        assert 0 < plan.num_tokens <= self.budget
        assert len(plan.shares) <= self.seqs
        self._move(plan)
        for sequence, num_tokens, num_rows in plan.shares:
            self._compute(sequence, num_tokens)
            if num_rows and sequence.reader is None:
                self._grow(sequence, token, min(confirmed, num_rows - 1))
        self.scheduler.commit(plan)
        self.scheduler.check_integrity()
        return plan

    def run(self, **step):
        """Steps until all is done."""
        while not self.idle:
            self.step(**step)

    def _move(self, plan):
        for sequence, pages in plan.swaps_out:
            self.swap[sequence.swap] = self.pages[pages]
        for source, target in plan.copies:
            self.pages[target] = self.pages[source]
        for sequence, first in plan.swaps_in.values():
            places = sequence.swap[first:]
            self.pages[sequence.pages[first : first + len(places)]] = self.swap[places]

    def _compute(self, sequence, num_tokens):
        end = sequence.num_computed + num_tokens
        assert len(sequence.pages) == sequence.pages_for(end)
        slots = self.pages[sequence.pages].reshape(-1)
        known = slots[: sequence.num_computed]
        assert np.array_equal(known, sequence.ids[: sequence.num_computed]), "a page holds other tokens"
        for place in range(sequence.num_computed, end):
            page = sequence.pages[place // PAGE_LEN]
            assert not self.scheduler.pool.shared(page), "a page that others read is written to"
            self.pages[page, place % PAGE_LEN] = sequence.ids[place]

    def _grow(self, sequence, token, confirmed):
        drafts = sequence.ids[sequence.num_tokens : sequence.num_tokens + confirmed].tolist()
        grown = 0
        for chosen in [*drafts, token]:
            sequence.accept(chosen)
            grown += 1
            if sequence.done:
                break
        sequence.drafts = grown - 1
