"""Answers are token for token those without speculation, whatever else happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfbyte import CancelledError
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.speculation.eager import be_eager, eager_ngram
from tests.runtime.toy import Gate, ToyExecutable, ask, ids_of, tokens_of, toy_engine

SAMPLERS = {
    "greedy": SamplingParams(),
    "drawn": SamplingParams(temperature=0.6, top_k=3, seed=5),
    "wide": SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=6),
    "penalties": SamplingParams(temperature=0.2, repeat_penalty=1.02, presence_penalty=0.02, seed=7),
    "dry": SamplingParams(dry_multiplier=0.3),
    "mirostat": SamplingParams(temperature=0.7, mirostat=2, mirostat_tau=1.0, seed=8),
    "logprobs": SamplingParams(temperature=0.4, logprobs=2, seed=9),
    "order": SamplingParams(temperature=0.5, samplers=("temperature", "xtc", "top_k"), xtc_probability=0.5, seed=2),
}
CYCLE = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    be_eager(monkeypatch)


def engine(speculation=None, *, memory=2, n_pages=16, **options):
    return toy_engine(ToyExecutable(memory=memory, n_pages=n_pages), speculation=speculation, **options)


def answers(speculation, asks, *, prompt=CYCLE, **options):
    """The tokens of each of `asks`, all asked at once, and what was drafted for them."""
    it = engine(speculation, **options)
    try:
        requests = [it.submit(ids_of(*prompt, n), one) for n, one in enumerate(asks)]
        return [tokens_of(request) for request in requests]
    finally:
        it.close()


@pytest.mark.parametrize("params", SAMPLERS.values(), ids=SAMPLERS)
def test_every_sampler_chooses_what_it_would_have(params):
    speculation = eager_ngram()
    asks = [ask(50, params=params)]
    assert answers(speculation, asks, memory=1, context=64) == answers(None, asks, memory=1, context=64)
    assert speculation.counts.drafted > 0


def test_drafts_come_true_where_an_answer_repeats_itself():
    speculation = eager_ngram()
    toy = ToyExecutable(memory=1)
    it = toy_engine(toy, speculation=speculation, context=64)
    tokens = tokens_of(it.submit(ids_of(1), ask(60)))
    it.close()
    assert (len(tokens), toy.steps) == (60, pytest.approx(20, abs=8))
    assert speculation.counts.accepted > 40


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompt=st.lists(st.integers(0, 4), min_size=1, max_size=20),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    memory=st.integers(1, 3),
    n_pages=st.integers(13, 20),
    max_draft=st.integers(1, 15),
    budget=st.integers(3, 40),
    swap=st.sampled_from([0, 2000]),
    temperature=st.sampled_from([0.0, 0.7]),
    eog=st.frozensets(st.integers(0, 49), max_size=3),
)
def test_in_company_with_few_pages_and_ends_among_the_drafts(
    prompt, lengths, memory, n_pages, max_draft, budget, swap, temperature, eog
):
    params = SamplingParams(temperature=temperature, top_k=2, seed=1)
    asks = [ask(length, params=params) for length in lengths]
    more = {"prompt": prompt, "memory": memory, "context": 52, "eog_ids": eog}
    expected = answers(None, asks, n_pages=64, **more)
    found = answers(
        eager_ngram(max_draft=max_draft),
        asks,
        n_pages=n_pages,
        max_num_batched_tokens=budget,
        max_num_seqs=3,
        swap_space=swap,
        **more,
    )
    assert found == expected


@pytest.mark.parametrize("at", range(1, 24, 4))
def test_a_fork_goes_on_from_any_token(at):
    def forked(speculation):
        it = engine(speculation, memory=1, context=64)
        request = it.submit(ids_of(*CYCLE), ask(40))
        tokens = [request.receive().chosen.token for _ in range(at)]
        child = it.fork(request, len(CYCLE) + at, ask(20, params=SAMPLERS["drawn"]))
        found = tokens + tokens_of(request), tokens_of(child)
        it.close()
        return found

    assert forked(eager_ngram()) == forked(None)


def test_many_answers_to_one_prompt_share_its_pages():
    def samples(speculation):
        it = engine(speculation, context=40)
        asks = [ask(20, params=SamplingParams(temperature=0.7, seed=seed)) for seed in range(4)]
        found = [tokens_of(request) for request in it.submit_all(ids_of(*CYCLE, *CYCLE), asks)]
        assert it.status().pages_used == 0
        it.close()
        return found

    assert samples(eager_ngram()) == samples(None)


def test_a_cancelled_request_leaves_no_pages_and_no_trail():
    speculation, gate = eager_ngram(), Gate()
    it = toy_engine(ToyExecutable(memory=1, before_run=gate), speculation=speculation, context=64)
    request = it.submit(ids_of(*CYCLE, *CYCLE), ask(40))
    assert gate.entered.acquire(timeout=10)
    while not request.sequence.drafts:
        gate.open.release()
        assert gate.entered.acquire(timeout=10)
    it.cancel(request)
    gate.open.release()
    with pytest.raises(CancelledError):
        tokens_of(request)
    assert it.call(lambda loop: loop.scheduler.check_integrity()) is None
    assert it.status().pages_used == 0
    assert it.call(lambda loop: len(speculation._proposers[0]._trails)) == 0
    it.close()


def test_logits_of_a_reader_are_not_touched():
    rows = {}

    class Keep:
        def read(self, start, logits):
            rows[start] = np.array(logits)

    it = engine(eager_ngram(), context=64)
    talker = it.submit(ids_of(*CYCLE), ask(40))
    tokens_of(it.read(ids_of(*CYCLE), Keep()))
    tokens_of(talker)
    it.close()
    assert sum(len(part) for part in rows.values()) == len(CYCLE)


def test_an_error_of_a_proposer_costs_no_request(caplog):
    speculation = eager_ngram()
    it = engine(speculation, memory=1, context=64)
    speculation._proposers[0].propose = lambda lengths: 1 / 0
    expected = answers(None, [ask(40)], memory=1, context=64)
    assert [tokens_of(it.submit(ids_of(*CYCLE, 0), ask(40)))] == expected
    assert [tokens_of(it.submit(ids_of(*CYCLE, 0), ask(40)))] == expected
    it.close()
    assert caplog.text.count("speculation is off from here on") == 1
