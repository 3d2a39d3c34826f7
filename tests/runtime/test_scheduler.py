"""The scheduler alone: no engine, no thread, tokens are made up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.pages import PagePool
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.runtime.sampling.sampler import Sampler
from halfbyte.runtime.scheduler import Scheduler
from halfbyte.runtime.sequence import Sequence

PAGE_LEN = 4
N_PAGES = 6
CONTEXT = N_PAGES * PAGE_LEN
END = 99


def growing(length: int, answer: int = 1, token: int = 1) -> Sequence:
    prompt = np.full(length, token, np.int32)
    sampler = Sampler(SamplingParams(), lambda logits, k: None, prompt=prompt, capacity=CONTEXT)
    max_len = min(length + answer, CONTEXT)
    return Sequence(prompt, max_len=max_len, page_len=PAGE_LEN, eog_ids=frozenset([END]), sampler=sampler)


def scoring(length: int) -> Sequence:
    scores = np.zeros((length, 3), np.float32)
    return Sequence(np.ones(length, np.int32), max_len=length, page_len=PAGE_LEN, scores=scores)


def scheduler(*, seqs: int = 3, budget: int = 8, keep: bool = True) -> Scheduler:
    return Scheduler(PagePool(N_PAGES, keep=keep), max_num_seqs=seqs, max_num_batched_tokens=budget)


def step(it: Scheduler, token: int = 1):
    """One step in which every asked-for row yields `token`; checks what must hold for any."""
    plan = it.schedule()
    assert 0 < plan.num_tokens <= it._budget
    assert len(plan.shares) <= it._max_num_seqs
    for sequence, num_tokens, _ in plan.shares:
        assert len(sequence.pages) == sequence.pages_for(sequence.num_computed + num_tokens)
    it.commit(plan, {s.arrival: token for s, _, rows in plan.shares if rows and s.sampler is not None})
    it.check_integrity()
    return plan


def counts(plan) -> list[int]:
    return [share.num_tokens for share in plan.shares]


def test_a_prompt_is_cut_into_chunks_and_only_the_last_asks_for_logits():
    it = scheduler(budget=8)
    it.add(growing(18))
    plans = [step(it) for _ in range(3)]
    assert [counts(plan) for plan in plans] == [[8], [8], [2]]
    assert [plan.shares[0].num_rows for plan in plans] == [0, 0, 1]
    assert it.idle


def test_answers_go_on_while_a_prompt_is_read():
    it = scheduler(budget=4)
    talker, reader = growing(2, answer=9), growing(9)
    it.add(talker)
    step(it)
    it.add(reader)
    plan = step(it)
    assert [(share.sequence, share.num_tokens) for share in plan.shares] == [(talker, 1), (reader, 3)]


def test_an_end_token_ends_and_is_left_out():
    it = scheduler()
    sequence = growing(3, answer=5)
    it.add(sequence)
    step(it, END)
    assert (sequence.finish_reason, sequence.num_tokens) == ("stop", 3)
    assert it.idle


def test_the_last_token_that_fits_ends():
    it = scheduler()
    sequence = growing(3, answer=2)
    it.add(sequence)
    step(it)
    assert sequence.finish_reason is None
    step(it)
    assert (sequence.finish_reason, sequence.num_tokens) == ("length", 5)


def test_a_known_beginning_is_not_computed_again():
    it = scheduler()
    it.add(growing(9))
    step(it)
    step(it)
    again = growing(11)
    it.add(again)
    assert counts(step(it)) == [3]
    assert again.num_cached == 8


def test_the_last_token_of_a_known_prompt_is_still_computed():
    it = scheduler()
    it.add(growing(8))
    step(it)
    again = growing(8)
    it.add(again)
    plan = step(it)
    assert counts(plan) == [4]
    assert plan.shares[0].num_rows == 1


def test_without_cache_everything_is_computed():
    it = scheduler(keep=False)
    for _ in range(2):
        sequence = growing(8)
        it.add(sequence)
        assert counts(step(it)) == [8]
        assert sequence.num_cached == 0


def test_the_youngest_goes_back_when_pages_run_out_and_takes_its_tokens_along():
    it = scheduler(budget=24)
    old, young = growing(11, answer=20), growing(11, answer=9, token=2)
    it.add(old)
    it.add(young)
    while not young.put_back:
        step(it)
    assert not old.put_back
    assert young.num_tokens > 11
    assert it.pool.num_used == len(old.pages)
    grown = young.num_tokens
    while not it.idle:
        step(it)
    assert young.num_tokens == young.max_len > grown
    assert (old.finish_reason, young.finish_reason) == ("length", "length")
    assert young.num_cached == 0


def test_scoring_takes_turns_with_answers():
    it = scheduler(budget=4)
    it.add(growing(2, answer=9))
    scored = scoring(12)
    it.add(scored)
    kinds = [step(it).shares[0].sequence is scored for _ in range(6)]
    assert kinds.count(True) == 3
    assert kinds[:4] in ([True, False] * 2, [False, True] * 2)
    assert scored.done


def test_removing_frees_pages_and_may_be_done_twice():
    it = scheduler()
    running, waiting = growing(20, answer=4), growing(20, answer=4)
    it.add(running)
    step(it)
    it.add(waiting)
    for sequence in (waiting, running, running):
        it.remove(sequence)
    assert it.idle
    assert it.pool.num_used == 0


def test_a_budget_below_the_number_of_sequences_could_starve_a_prompt():
    with pytest.raises(AssertionError):
        scheduler(seqs=3, budget=2)


SEQUENCES = st.lists(
    st.tuples(st.integers(1, CONTEXT - 1), st.integers(1, CONTEXT), st.integers(1, 2), st.booleans()),
    min_size=1,
    max_size=7,
)


@given(
    wanted=SEQUENCES,
    seqs=st.integers(1, 4),
    extra=st.integers(0, 9),
    keep=st.booleans(),
    gaps=st.lists(st.integers(0, 3), min_size=7, max_size=7),
)
def test_every_sequence_ends_in_order_of_need_and_every_page_comes_back(wanted, seqs, extra, keep, gaps):
    it = scheduler(seqs=seqs, budget=seqs + extra, keep=keep)
    everyone = []
    for (length, answer, token, scores), gap in zip(wanted, gaps, strict=False):
        everyone.append(scoring(length) if scores else growing(length, answer, token))
        it.add(everyone[-1])
        for _ in range(gap):
            if not it.idle:
                step(it)
    worst = sum(2 * s.max_len + 2 for s in everyone) * (len(everyone) + 1)
    for _ in range(worst):
        if it.idle:
            break
        oldest = min((*it.running, *it.waiting), key=lambda s: s.arrival)
        step(it)
        assert oldest.done or not oldest.put_back
    assert it.idle
    assert all(s.done for s in everyone)
    assert it.pool.num_used == 0
