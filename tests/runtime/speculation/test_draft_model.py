"""A draft model guesses for many sequences at once, and whatever happens to it answers stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.speculation.eager import be_eager, eager_model
from tests.runtime.toy import VOCAB, ToyExecutable, ask, ids_of, tokens_of, toy_engine

DRAWN = SamplingParams(temperature=0.8, top_k=5, repeat_penalty=1.05, seed=3)
PROMPT = list(range(1, 12))


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    be_eager(monkeypatch)


class Unsure(ToyExecutable):
    """Thinks as the model does, save in every third step."""

    def run(self, batch, logits):
        super().run(batch, logits)
        if self.steps % 3 == 0:
            logits[:] = np.roll(logits, 1, axis=1)


def answers(speculation, asks, *, prompt=PROMPT, **options):
    it = toy_engine(ToyExecutable(n_pages=80), speculation=speculation, context=64, **options)
    try:
        return [tokens_of(r) for r in [it.submit(ids_of(*prompt, n), one) for n, one in enumerate(asks)]]
    finally:
        it.close()


@pytest.mark.parametrize("params", [SamplingParams(), DRAWN], ids=["greedy", "drawn"])
def test_a_model_that_thinks_alike_is_always_right(params):
    draft = ToyExecutable(n_pages=40, page_len=5)
    speculation = eager_model(draft)
    asks = [ask(n, params=params) for n in (40, 31, 7)]
    assert answers(speculation, asks) == answers(None, asks)
    assert speculation.counts.accepted == speculation.counts.drafted > 60
    assert draft.closed == 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    size=st.integers(1, 20),
    n_pages=st.integers(1, 30),
    page_len=st.integers(1, 7),
    max_tokens=st.integers(5, 40),
    context=st.integers(10, 64),
    ngram=st.booleans(),
    temperature=st.sampled_from([0.0, 0.8]),
    eog=st.frozensets(st.integers(0, 49), max_size=3),
)
def test_one_that_errs_and_runs_out_of_pages_changes_no_answer(
    lengths, size, n_pages, page_len, max_tokens, context, ngram, temperature, eog
):
    asks = [ask(length, params=SamplingParams(temperature=temperature, seed=4)) for length in lengths]
    draft = Unsure(n_pages=n_pages, page_len=page_len)
    speculation = eager_model(draft, ngram=ngram, max_tokens=max_tokens, max_seqs=5, context=context)
    more = {"prompt": range(size), "max_num_seqs": 5, "eog_ids": eog}
    assert answers(speculation, asks, **more) == answers(None, asks, **more)
    assert speculation._proposers == []


def test_a_long_prompt_is_read_in_parts_before_anything_is_drafted():
    draft = ToyExecutable(n_pages=40)
    steps = []
    draft.before_run = lambda batch: steps.append((len(batch.ids), len(batch.logit_rows)))
    speculation = eager_model(draft)
    answers(speculation, [ask(20)], prompt=[2] * 42)
    assert steps[:2] == [(9, 0), (9, 0)]
    assert max(width for width, _ in steps) == 9
    assert speculation.counts.accepted > 10


def test_its_failure_costs_no_request(caplog):
    def fail(batch):
        raise RuntimeError("no memory")

    draft = ToyExecutable(n_pages=40, before_run=fail)
    asks = [ask(20), ask(12)]
    assert answers(eager_model(draft), asks) == answers(None, asks)
    assert caplog.text.count("speculation is off from here on") == 1
    assert draft.closed == 1


def test_functions_of_the_caller_are_called_as_often_as_without_it():
    def counted(speculation):
        calls = []

        def keep(ids, logits):
            calls.append(1)
            return ids, logits

        params = SamplingParams(temperature=0.5, samplers=("top_k", keep), seed=1)
        return answers(speculation, [ask(20, params=params)]), len(calls)

    assert counted(eager_model(ToyExecutable(n_pages=40))) == counted(None)


class Narrow(ToyExecutable):
    """Lacks the last ten tokens."""

    def run(self, batch, logits):
        assert batch.ids.max() < VOCAB - 10
        wide = np.empty((len(logits), VOCAB), np.float32)
        super().run(batch, wide)
        logits[:] = wide[:, : VOCAB - 10]


@pytest.mark.parametrize("bias", [{}, {VOCAB - 1: 1.0}])
def test_tokens_that_the_draft_model_lacks_are_never_shown_to_it(bias, caplog):
    speculation = eager_model(Narrow(n_pages=40), vocab_size=VOCAB - 10)
    asks = [ask(40, params=SamplingParams(temperature=0.5, seed=seed, logit_bias=bias)) for seed in range(3)]
    assert answers(speculation, asks) == answers(None, asks)
    assert (speculation.counts.drafted > 0) is not bool(bias)
    assert "off" not in caplog.text


def test_pages_of_a_sequence_that_is_gone_come_back():
    speculation = eager_model(ToyExecutable(n_pages=40))
    model = speculation._proposers[0]
    it = toy_engine(ToyExecutable(), speculation=speculation, context=64)
    tokens_of(it.submit(ids_of(*PROMPT), ask(20)))
    it.call(lambda loop: loop.speculation.forget())
    assert (model._pool.num_free, model._shadows) == (40, {})
    it.close()
