"""What a model tells about itself."""

from __future__ import annotations

import threading
from dataclasses import asdict

import pytest

from halfbyte import errors
from halfbyte.runtime.metrics.metrics import ENDS, PHASES, REJECTIONS, Metrics
from tests.runtime.toy import VOCAB, Gate, ToyExecutable, wait_until
from tests.runtime.toy_llm import TEXT, toy_llm


@pytest.fixture
def llm():
    with toy_llm() as made:
        yield made


def settled(llm) -> Metrics:
    """Once all requests have ended: a caller has its answer before the step is over."""
    wait_until(lambda: llm.info()["running"] == llm.info()["waiting"] == 0)
    llm._engine.call(lambda loop: None)
    return llm.metrics()


def test_a_fresh_model_has_done_nothing(llm):
    metrics = llm.metrics()
    assert metrics.ended == dict.fromkeys(ENDS, 0)
    assert metrics.rejected == dict.fromkeys(REJECTIONS, 0)
    assert metrics.phase_s == dict.fromkeys(PHASES, 0.0)
    assert (metrics.prefix_hit_rate, metrics.acceptance_rate, metrics.steps) == (0.0, 0.0, 0)
    assert metrics.pages_free == 16
    assert (metrics.pages_cached, metrics.pages_used) == (0, 0)


def test_tokens_waits_and_rates_are_those_of_the_requests(llm):
    for _ in range(2):
        llm.generate([1] * 9, max_tokens=6)
    metrics = settled(llm)
    assert (metrics.prompt_tokens, metrics.cached_tokens, metrics.generated_tokens) == (18, 8, 12)
    assert metrics.prefix_hit_rate == pytest.approx(8 / 18)
    assert (metrics.first_token.count, metrics.inter_token.count) == (2, 10)
    assert 0 < metrics.inter_token.p50 <= metrics.inter_token.p90 <= metrics.inter_token.p99
    assert 0 < metrics.prompt_tok_s <= 10
    assert 0 < metrics.generated_tok_s <= 12
    assert metrics.steps == 12
    assert all(seconds > 0 for seconds in metrics.phase_s.values())
    assert metrics.ended == dict.fromkeys(ENDS, 0) | {"length": 2}


def test_ends_are_told_apart():
    with toy_llm(ToyExecutable(n_pages=2500), context=10_000) as llm:
        llm.generate("BC", stop=TEXT[3:5])
        llm.logits([1, 2, 3])
        with llm.stream([1, 2]) as stream:
            next(stream)
        ended = settled(llm).ended
    assert ended == dict.fromkeys(ENDS, 0) | {"stop": 1, "read": 1, "cancelled": 1}


def test_a_missed_deadline_and_a_failure():
    def fail(batch):
        if batch.ids[0] == 7:
            raise ValueError("broken")

    with toy_llm(ToyExecutable(before_run=fail)) as llm:
        with pytest.raises(errors.DeadlineExceededError):
            llm.generate([1], timeout=1e-9)
        with pytest.raises(errors.RequestError, match="broken"):
            llm.generate([7])
        assert settled(llm).ended == dict.fromkeys(ENDS, 0) | {"deadline": 1, "failed": 1}


@pytest.mark.parametrize(
    ("reason", "prompt", "options"),
    [
        ("bad_prompt", [], {}),
        ("bad_prompt", [VOCAB], {}),
        ("context_exceeded", [1] * 100, {}),
        ("kv_budget_exceeded", [1] * 20, {"max_tokens": 12}),
    ],
)
def test_rejections_have_a_reason(reason, prompt, options):
    with toy_llm(ToyExecutable(n_pages=6)) as llm:
        with pytest.raises(errors.RequestError):
            llm.generate(prompt, **options)
        assert llm.metrics().rejected == dict.fromkeys(REJECTIONS, 0) | {reason: 1}
        assert llm.metrics().ended == dict.fromkeys(ENDS, 0)


def test_queues_and_pages_are_those_of_now():
    gate = Gate()
    with toy_llm(ToyExecutable(before_run=gate), max_num_seqs=1, max_queued=1) as llm:
        streams = [llm.stream([1, 2, 3], max_tokens=2)]
        gate.entered.acquire()
        streams.append(llm.stream([4], max_tokens=1))
        with pytest.raises(errors.QueueFullError):
            llm.stream([4])
        gate.open.release()
        gate.entered.acquire()
        metrics = llm.metrics()
        assert (metrics.running, metrics.waiting, metrics.swapped) == (1, 1, 0)
        assert (metrics.pages_used, metrics.pages_free) == (1, 15)
        assert metrics.rejected["queue_full"] == 1
        gate.open.release(100)
        for stream in streams:
            stream.close()


def test_preemptions_are_told_apart():
    for swap_space, kind in ((0, "recompute"), (10**5, "swap")):
        with toy_llm(ToyExecutable(n_pages=60), context=160, prefix_cache=False, swap_space=swap_space) as llm:
            for stream in [llm.stream([i] * 70, max_tokens=30) for i in range(3)]:
                stream.collect()
            metrics = settled(llm)
        assert metrics.preempted.pop(kind) > 0
        assert list(metrics.preempted.values()) == [0]


def test_drafts_are_counted():
    def propose(loop):
        running = loop.scheduler.running
        if running and running[0].num_new == 1:
            running[0].propose([0, 0, 0])

    with toy_llm(ToyExecutable(n_pages=2500), context=10_000) as llm, llm.stream([1, 2]):
        while llm.metrics().drafted_tokens == 0:
            llm._engine.call(propose)
        metrics = llm.metrics()
    assert metrics.drafted_tokens % 3 == 0
    assert 0 <= metrics.accepted_tokens < metrics.drafted_tokens
    assert metrics.acceptance_rate < 1


def test_metrics_can_be_kept_as_json_and_outlive_the_model(llm):
    threads = [threading.Thread(target=llm.generate, args=([i],), kwargs={"max_tokens": 9}) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    llm.close()
    metrics = llm.metrics()
    assert asdict(metrics)["ended"]["length"] == 4
    assert metrics.pages_used == 0
