"""The scheduler alone: no engine, no thread, tokens are made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.adapters import AdapterUse
from halfbyte.runtime.sequence import PATIENCE_S
from tests.runtime.simulated import CONTEXT, END, N_PAGES, Simulation, counts, forked, growing, reading


def test_a_prompt_is_cut_into_chunks_and_only_the_last_asks_for_logits():
    it = Simulation(budget=8)
    it.add(growing(18))
    plans = [it.step() for _ in range(3)]
    assert [counts(plan) for plan in plans] == [[8], [8], [2]]
    assert [plan.shares[0].num_rows for plan in plans] == [0, 0, 1]
    assert it.idle


def test_answers_go_on_while_a_prompt_is_read():
    it = Simulation(budget=4)
    talker, reader = growing(2, answer=9), growing(9)
    it.add(talker)
    it.step()
    it.add(reader)
    plan = it.step()
    assert [(share.sequence, share.num_tokens) for share in plan.shares] == [(talker, 1), (reader, 3)]


def test_prompts_take_no_more_beside_answers_than_they_are_given():
    it = Simulation(budget=20)
    it.add(growing(2, answer=9))
    it.step()
    it.add(growing(9), growing(3))
    assert counts(it.step(prompt_tokens=0)) == [1]
    assert counts(it.step(prompt_tokens=4)) == [1, 4]
    assert counts(it.step(prompt_tokens=7)) == [1, 5, 2]


def test_without_answers_prompts_take_all():
    it = Simulation(budget=20)
    it.add(growing(9), growing(3))
    assert counts(it.step(prompt_tokens=0)) == [9, 3]


def test_an_end_token_ends_and_is_left_out():
    it = Simulation()
    sequence = growing(3, answer=5)
    it.add(sequence)
    it.step(END)
    assert (sequence.finish_reason, sequence.num_tokens) == ("stop", 3)
    assert it.idle


def test_the_last_token_that_fits_ends():
    it = Simulation()
    sequence = growing(3, answer=2)
    it.add(sequence)
    it.step()
    assert sequence.finish_reason is None
    it.step()
    assert (sequence.finish_reason, sequence.num_tokens) == ("length", 5)


def test_a_known_beginning_is_not_computed_again():
    it = Simulation()
    it.add(growing(9))
    it.run()
    again = growing(11)
    it.add(again)
    assert counts(it.step()) == [3]
    assert again.num_cached == 8


def test_the_last_token_of_a_known_prompt_is_still_computed():
    it = Simulation()
    it.add(growing(8))
    it.step()
    again = growing(8)
    it.add(again)
    plan = it.step()
    assert counts(plan) == [4]
    assert plan.shares[0].num_rows == 1


def test_adapters_share_no_beginnings():
    it = Simulation()
    it.add(growing(9))
    it.run()
    other = growing(9, adapters=AdapterUse(seed=b"another"))
    it.add(other)
    it.run()
    assert other.num_cached == 0


def test_without_cache_everything_is_computed():
    it = Simulation(keep=False)
    for _ in range(2):
        sequence = growing(8)
        it.add(sequence)
        assert counts(it.step()) == [8]
        assert sequence.num_cached == 0


def test_two_that_compute_the_same_at_once_end_up_with_one_copy():
    it = Simulation(budget=16)
    twins = growing(8, answer=4), growing(8, answer=4)
    it.add(*twins)
    it.step()
    assert twins[0].pages == twins[1].pages
    assert it.scheduler.pool.num_used == 2
    it.run()


def test_the_last_goes_back_when_pages_run_out_and_takes_its_tokens_along():
    it = Simulation(budget=24)
    old, young = growing(11, answer=20), growing(11, answer=9, token=2)
    it.add(old, young)
    while not young.put_back:
        it.step()
    assert not old.put_back
    assert young.num_tokens > 11
    assert it.scheduler.pool.num_used == len(old.pages)
    grown = young.num_tokens
    it.run()
    assert young.num_tokens == young.max_len > grown
    assert (old.finish_reason, young.finish_reason) == ("length", "length")
    assert young.num_cached == 0


class TestPriority:
    """Who is more urgent goes first; who waits long enough becomes so."""

    def test_the_more_urgent_is_admitted_first(self):
        it = Simulation(seqs=1)
        casual, urgent = growing(2, priority=1), growing(2, token=2)
        it.add(casual, urgent)
        assert it.step().shares[0].sequence is urgent

    def test_waiting_makes_up_for_priority(self):
        old = growing(2, priority=1, submitted_at=0.0)
        new = growing(2, priority=0, submitted_at=PATIENCE_S + 1)
        it = Simulation(seqs=1)
        it.add(new, old)
        assert it.step().shares[0].sequence is old

    def test_the_more_urgent_takes_the_place_of_one_that_runs(self):
        it = Simulation(seqs=1)
        casual, urgent = growing(2, answer=9, priority=1), growing(2, token=2)
        it.add(casual)
        it.step()
        it.add(urgent)
        plan = it.step()
        assert plan.shares[0].sequence is urgent
        assert plan.put_back == [casual]
        it.run()
        assert casual.num_tokens == 11

    def test_equals_do_not_push_each_other_out(self):
        it = Simulation(seqs=1)
        first = growing(2, answer=9)
        it.add(first)
        it.step()
        it.add(growing(2, token=2))
        assert it.step().shares[0].sequence is first


def test_readers_get_every_row_and_share_steps_with_answers():
    it = Simulation(budget=8, read_rows=3)
    it.add(growing(2, answer=9))
    it.step()
    it.add(reading(7))
    plans = [it.step() for _ in range(3)]
    assert [[share[1:] for share in plan.shares] for plan in plans] == [
        [(1, 1), (3, 3)],
        [(1, 1), (3, 3)],
        [(1, 1), (1, 1)],
    ]


def test_removing_frees_pages_and_may_be_done_twice():
    it = Simulation()
    running, waiting = growing(20, answer=4), growing(20, answer=4)
    it.add(running)
    it.step()
    it.add(waiting)
    for sequence in (waiting, running, running):
        it.scheduler.remove(sequence)
    assert it.idle
    assert it.scheduler.pool.num_used == 0


def test_a_budget_below_the_number_of_sequences_could_starve_a_prompt():
    with pytest.raises(AssertionError):
        Simulation(seqs=3, budget=2)


WANTED = st.lists(
    st.tuples(
        st.integers(1, CONTEXT - 1),
        st.integers(1, CONTEXT),
        st.integers(1, 2),
        st.sampled_from(["grow", "read", "fork"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=7,
)


@given(
    wanted=WANTED,
    seqs=st.integers(1, 4),
    extra=st.integers(0, 9),
    keep=st.booleans(),
    swap=st.sampled_from([0, 3, 50]),
    gaps=st.lists(st.integers(0, 3), min_size=7, max_size=7),
    confirmed=st.integers(0, 3),
    prompt_tokens=st.sampled_from([None, 1, 5]),
    cancelled=st.sets(st.integers(0, 6), max_size=2),
)
def test_every_sequence_ends_no_page_is_wrong_and_all_come_back(
    wanted, seqs, extra, keep, swap, gaps, confirmed, prompt_tokens, cancelled
):
    it = Simulation(seqs=seqs, budget=seqs + extra, keep=keep, swap=swap)
    everyone = []

    def step():
        for sequence in it.scheduler.running:
            if sequence.reader is None and sequence.num_new == 1 and sequence.num_tokens % 3 == 0:
                sequence.propose([1, 2, 1])
        first = min((*it.scheduler.running, *it.scheduler.waiting), key=lambda s: s.rank)
        it.step(confirmed=confirmed, prompt_tokens=prompt_tokens)
        assert first.done or not first.put_back or first.origin is not None

    for (length, answer, token, kind, priority), gap in zip(wanted, gaps, strict=False):
        grown = [s for s in everyone if s.reader is None and s.num_tokens < CONTEXT]
        if kind == "fork" and grown:
            everyone.append(forked(grown[length % len(grown)], min(length, grown[length % len(grown)].num_tokens)))
        elif kind == "read":
            everyone.append(reading(length))
        else:
            everyone.append(growing(length, answer, token, priority=priority))
        it.add(everyone[-1])
        for _ in range(gap):
            if not it.idle:
                step()
    for number in cancelled & set(range(len(everyone))):
        it.scheduler.remove(everyone[number])
    worst = sum(3 * s.max_len + 3 for s in everyone) * (len(everyone) + 1)
    for _ in range(worst):
        if it.idle:
            break
        step()
    assert it.idle
    assert all(s.done for s in everyone)
    assert it.scheduler.pool.num_used == it.scheduler.swap.used == 0
    assert it.scheduler.pool.available == N_PAGES
