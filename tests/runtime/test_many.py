"""Several answers at once: batches, samples of one prompt, branches, and what is refused."""

from __future__ import annotations

import threading

import pytest

from halfbyte.errors import (
    CancelledError,
    ConfigError,
    ContextExceededError,
    DeadlineExceededError,
    KvBudgetExceededError,
    QueueFullError,
)
from tests.runtime.toy import Gate, ToyExecutable, toy_answer, wait_until
from tests.runtime.toy_llm import ANSWER, pages_used, toy_llm


@pytest.fixture
def llm():
    with toy_llm(ToyExecutable(n_pages=60), context=100) as made:
        yield made


class TestBatch:
    """A list of prompts gives a list of answers."""

    def test_answers_come_in_the_order_of_their_prompts(self, llm):
        prompts = [[i, i + 1, *range(i)] for i in range(20)]
        answers = llm.generate(prompts, max_tokens=5)
        assert [list(done.ids) for done in answers] == [toy_answer(prompt, 5) for prompt in prompts]

    def test_texts_and_tuples_are_batches_too(self, llm):
        assert [done.prompt_ids for done in llm.generate(("BC", "D"), max_tokens=1)] == [(1, 2), (3,)]

    def test_one_prompt_that_cannot_be_served_cancels_all(self, llm):
        with pytest.raises(ContextExceededError):
            llm.generate([[1], [1] * 200], max_tokens=50)
        wait_until(lambda: pages_used(llm) == 0)

    def test_a_flat_list_of_ids_is_one_prompt(self, llm):
        assert llm.generate([1, 2], max_tokens=12).ids == tuple(ANSWER)


class TestSamples:
    """Several answers to one prompt."""

    def test_the_prompt_is_computed_and_kept_once(self):
        steps = []
        executable = ToyExecutable(n_pages=60, before_run=lambda batch: steps.append(len(batch.ids)))
        with toy_llm(executable, context=100, prefix_cache=False) as llm:
            prompt = [*range(37)]
            answers = llm.samples(prompt, 4, temperature=2.0, seed=3, max_tokens=6)
            assert sum(steps) == 37 + 3 + 4 * 5
            assert [done.timings.cached_tokens for done in answers] == [0, 36, 36, 36]

    def test_each_takes_the_next_seed(self, llm):
        answers = llm.samples([1, 2], 4, temperature=2.0, seed=3, max_tokens=6)
        alone = [llm.generate([1, 2], temperature=2.0, seed=seed, max_tokens=6) for seed in (3, 4, 5, 6)]
        assert [done.ids for done in answers] == [done.ids for done in alone]
        assert len({done.ids for done in answers}) == 4

    def test_more_than_run_at_once(self, llm):
        assert {done.ids for done in llm.samples([1, 2], 30, max_tokens=12)} == {tuple(ANSWER)}

    @pytest.mark.parametrize("n", [0, True, 1.0, 10**9])
    def test_a_number_that_is_none(self, llm, n):
        with pytest.raises(ConfigError, match="n must be"):
            llm.samples([1], n)


class TestFork:
    """A stream goes on in several ways from where it was read to."""

    def test_a_branch_goes_on_as_the_stream_itself_does(self, llm):
        with llm.stream([1, 2], max_tokens=12) as stream:
            taken = [*next(stream).ids, *next(stream).ids]
            branch = stream.fork(max_tokens=12 - len(taken))
            assert [*taken, *branch.collect().ids] == ANSWER
            assert [*taken, *stream.collect().ids] == ANSWER

    def test_options_go_over_those_of_the_stream_and_the_seed_is_drawn_anew(self, llm):
        with llm.stream([1, 2], temperature=3.0, top_k=0, seed=4, max_tokens=20) as stream:
            next(stream)
            seeds = {stream.fork(max_tokens=3).collect().seed for _ in range(3)}
            assert len(seeds | {4}) == 4
            assert stream.fork(temperature=0.0, max_tokens=1).collect().finish_reason == "length"

    def test_a_stop_string_that_began_before_the_branch_is_still_found(self, llm):
        text = llm.generate([1, 2], max_tokens=12).text
        with llm.stream([1, 2], max_tokens=12, stop=text[3:7]) as stream:
            next(stream)
            assert stream.fork().collect().text == text[1:3]

    def test_a_branch_outlives_its_stream(self, llm):
        with llm.stream([1, 2], max_tokens=50) as stream:
            taken = next(stream).ids
            branch = stream.fork(max_tokens=4)
        assert list(branch.collect().ids) == toy_answer([1, 2, *taken], 4)
        wait_until(lambda: pages_used(llm) == 0)

    def test_branches_of_a_long_beginning_hold_few_pages_more(self):
        gate = Gate()
        executable = ToyExecutable(n_pages=60)
        with toy_llm(executable, context=200) as llm, llm.stream([*range(40)] * 3, max_tokens=70) as stream:
            next(stream)
            executable.before_run = gate
            branches = [stream.fork(max_tokens=70) for _ in range(7)]
            for _ in range(3):
                assert gate.entered.acquire(timeout=10)
                used = llm._engine._loop.scheduler.pool.num_used
                gate.open.release()
            assert used <= 30 + 2 * 8
            executable.before_run = lambda batch: None
            gate.open.release()
            for branch in branches:
                branch.close()


class TestRefusals:
    """What cannot be had is told apart."""

    def test_a_prompt_longer_than_prompts_may_be(self):
        with (
            toy_llm(max_prompt_tokens=5) as llm,
            pytest.raises(ContextExceededError, match="6 tokens, and max_prompt_tokens allows 5"),
        ):
            llm.generate([1] * 6)

    def test_more_tokens_than_the_pages_hold(self):
        with toy_llm(ToyExecutable(n_pages=3), context=100) as llm:
            with pytest.raises(KvBudgetExceededError, match="kv_memory holds 12 tokens") as caught:
                llm.generate([1] * 8, max_tokens=10)
            assert caught.value.needed > caught.value.budget > 0
            assert len(llm.generate([1] * 8).ids) == 4

    def test_a_full_queue(self):
        gate = Gate()
        executable = ToyExecutable(before_run=gate)
        with toy_llm(executable, max_num_seqs=1, max_queued=1) as llm:
            streams = [llm.stream([1], max_tokens=1) for _ in range(2)]
            with pytest.raises(QueueFullError, match="2 requests run or wait"):
                llm.stream([1])
            executable.before_run = lambda batch: None
            gate.open.release()
            assert [len(stream.collect().ids) for stream in streams] == [1, 1]
            assert len(llm.generate([1], max_tokens=2).ids) == 2

    def test_a_deadline_that_passes(self):
        slow = threading.Event()
        with toy_llm(ToyExecutable(before_run=lambda batch: slow.wait(0.02) and None), context=30) as llm:
            with pytest.raises(DeadlineExceededError, match=r"timeout=0\.05 s"):
                llm.generate([1], timeout=0.05)
            assert pages_used(llm) == 0
            assert len(llm.generate([1], max_tokens=2, timeout=60).ids) == 2

    def test_calls_end_when_the_model_is_closed(self, llm):
        stream = llm.stream([1])
        llm.close()
        with pytest.raises(CancelledError):
            list(stream)

    @pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"priority": 1.5}])
    def test_values_out_of_range(self, llm, options):
        with pytest.raises(ConfigError, match=f"{next(iter(options))} must be"):
            llm.generate([1], **options)


def test_the_more_urgent_overtakes():
    gate, order = Gate(), []

    def before_run(batch):
        order.append(int(batch.ids[0]))
        gate(batch)

    with toy_llm(ToyExecutable(before_run=before_run), max_num_seqs=1) as llm:
        first = llm.stream([1], max_tokens=1)
        assert gate.entered.acquire(timeout=10)
        others = [llm.stream([token], max_tokens=1, priority=priority) for token, priority in ((2, 5), (3, -5))]
        for _ in range(3):
            gate.open.release()
        for stream in (first, *others):
            stream.collect()
    assert order == [1, 3, 2]
