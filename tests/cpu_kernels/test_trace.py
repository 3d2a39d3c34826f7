"""When each op ran: every op of every step on every thread, in order, by Python's own clock."""

import time
from itertools import pairwise

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.backend import WAIT
from tests.cpu_kernels.programs import IDS, MIXED, PAGE_LEN, VOCAB, build, logits_of
from tests.model.batches import run_all, step
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return bind(open_gguf(make_tiny_gguf(tmp_path_factory.mktemp("model") / "m.gguf", "llama", **MIXED)))


@pytest.fixture(scope="module", params=[1, 2])
def runner(request, model, kernels):
    made = build(model, threads=request.param)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def traced(runner):
    runner.trace(True)
    yield
    runner.trace(False)
    runner.spans()


def run(runner):
    return run_all(runner, [step([(IDS[:9], 0, [3])], PAGE_LEN)], VOCAB)


def by_thread(runner, spans):
    return [[span for span in spans if span.thread == thread] for thread in range(runner.info()["threads"])]


def labels(runner):
    return [call.label for call in runner._placed.plan.lowering.calls]


def test_every_op_is_there_once_a_step_on_every_thread_in_order(runner):
    run(runner)
    run(runner)
    spans = runner.spans()
    first = spans[0].step
    for number in (first, first + 1):
        for own in by_thread(runner, [span for span in spans if span.step == number]):
            assert [span.name for span in own if span.name != WAIT] == labels(runner)
    assert {span.step for span in spans} == {first, first + 1}


def test_times_are_those_of_the_clock_and_do_not_overlap(runner):
    before = time.perf_counter()
    run(runner)
    after = time.perf_counter()
    for own in by_thread(runner, runner.spans()):
        assert before < own[0].start_s
        assert own[-1].end_s < after
        assert all(span.start_s <= span.end_s for span in own)
        assert all(one.end_s <= other.start_s for one, other in pairwise(own))


def test_a_thread_waits_where_the_program_says_so_and_at_the_end(runner):
    run(runner)
    meets = [*runner._placed.barriers[:-1], True]
    expected = [name for label, meet in zip(labels(runner), meets, strict=True) for name in [label, WAIT][: 1 + meet]]
    for own in by_thread(runner, runner.spans()):
        names = [span.name for span in own]
        assert names == (expected if runner.info()["threads"] > 1 else labels(runner))


def test_nobody_goes_on_before_all_have_come(runner):
    run(runner)
    threads = [[span for span in own if span.name == WAIT] for own in by_thread(runner, runner.spans())]
    for waits in zip(*threads, strict=True):
        assert max(span.start_s for span in waits) <= min(span.end_s for span in waits)


def test_names_tell_the_weight(runner):
    run(runner)
    names = {span.name for span in runner.spans()}
    assert {
        "linear_q4_k blk.1.ffn_up",
        "linear_q6_k blk.0.ffn_down",
        "norm blk.2.attn_norm",
        "embed_q8_0 token_embd",
    } <= names
    assert {"angles", "embed_q8_0 token_embd", "kv_write_f16_f16 kv 1", "attention_f16_f16 blk.0.attn"} <= names


def test_spans_are_given_once_and_nothing_is_recorded_unasked(runner):
    run(runner)
    assert runner.spans()
    assert runner.spans() == []
    runner.trace(False)
    run(runner)
    runner.top_k(np.arange(50, dtype=np.float32), 3)
    assert runner.spans() == []


def test_what_was_recorded_stays_when_recording_ends(runner):
    run(runner)
    runner.trace(False)
    assert len({span.step for span in runner.spans()}) == 1


def test_other_work_of_the_threads_is_no_step(runner):
    run(runner)
    runner.top_k(np.arange(50, dtype=np.float32), 3)
    run(runner)
    assert [span.name for span in by_thread(runner, runner.spans())[0] if span.name != WAIT] == labels(runner) * 2


def test_logits_are_the_same_bits(runner):
    logits = logits_of(runner)
    runner.trace(False)
    assert np.array_equal(logits, logits_of(runner))


def test_old_steps_are_forgotten(runner):
    for _ in range(1003):
        run_all(runner, [step([(IDS[:1], 0, [3])], PAGE_LEN)], VOCAB)
    assert len({span.step for span in runner.spans()}) == 1000
