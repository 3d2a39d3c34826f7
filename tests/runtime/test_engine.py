"""The engine over a toy model whose greedy answers are known."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time

import numpy as np
import pytest

from halfbyte.errors import CancelledError, ContextExceededError, RequestError, ResourceError
from halfbyte.runtime.reader import KeepRows
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.toy import (
    VOCAB,
    Gate,
    ToyExecutable,
    ask,
    ids_of,
    tokens_of,
    toy_answer,
    toy_engine,
    toy_logits,
    wait_until,
)


@pytest.fixture
def engine():
    with_engine = toy_engine()
    yield with_engine
    with_engine.close()


def test_a_greedy_answer(engine):
    assert tokens_of(engine.submit(ids_of(3, 1, 4), ask(6))) == toy_answer([3, 1, 4], 6)


def test_without_max_tokens_an_answer_fills_the_context(engine):
    request = engine.submit(ids_of(*range(10)), ask())
    assert tokens_of(request) == toy_answer(range(10), 22)
    assert request.finish_reason == "length"


def test_an_end_token_ends_and_is_not_given_out():
    answer = toy_answer([5], 8)
    engine = toy_engine(eog_ids=frozenset(answer[3:4]))
    request = engine.submit(ids_of(5), ask(8))
    assert tokens_of(request) == answer[: answer.index(answer[3])]
    assert request.finish_reason == "stop"
    engine.close()


@pytest.mark.parametrize("chunk", [1, 3, 7, 64])
def test_answers_do_not_depend_on_chunks(chunk):
    prompt = list(range(17))
    engine = toy_engine(max_num_batched_tokens=chunk)
    assert tokens_of(engine.submit(ids_of(*prompt), ask(5))) == toy_answer(prompt, 5)
    engine.close()


def test_answers_of_many_at_once_are_those_each_has_alone_and_all_pages_come_back():
    engine = toy_engine(ToyExecutable(n_pages=9), max_num_batched_tokens=10)
    prompts = [[i % VOCAB] * (1 + i % 13) for i in range(25)]
    requests = [engine.submit(ids_of(*prompt), ask(12)) for prompt in prompts]
    assert [tokens_of(request) for request in requests] == [toy_answer(prompt, 12) for prompt in prompts]
    status = engine.status()
    assert (status.waiting, status.running, status.pages_used) == (0, 0, 0)
    engine._loop.scheduler.check_integrity()
    engine.close()


def test_a_seed_gives_the_same_tokens_alone_and_in_company():
    params = SamplingParams(temperature=1.5, top_k=0, top_p=1, min_p=0, seed=7, repeat_penalty=1.3)
    engine = toy_engine(prefix_cache=False)
    alone = tokens_of(engine.submit(ids_of(1, 2), ask(20, params=params)))
    company = [engine.submit(ids_of(9, i), ask(25, params=SamplingParams(temperature=2, seed=i))) for i in range(5)]
    together = engine.submit(ids_of(1, 2), ask(20, params=params))
    assert tokens_of(together) == alone != toy_answer([1, 2], 20)
    assert len({tuple(tokens_of(request)) for request in company}) == 5
    engine.close()


def test_a_second_turn_computes_only_what_is_new(engine):
    first = list(range(20))
    tokens_of(engine.submit(ids_of(*first), ask(1)))
    request = engine.submit(ids_of(*first, 7, 8), ask(3))
    assert tokens_of(request) == toy_answer([*first, 7, 8], 3)
    assert request.sequence.num_cached == 20


def test_scores_of_every_token_come_in_chunks_while_others_answer():
    engine = toy_engine(max_num_batched_tokens=8)
    talker = engine.submit(ids_of(2), ask(20))
    ids = ids_of(*range(19))
    reader = KeepRows(len(ids), VOCAB)
    tokens_of(engine.read(ids, reader))
    assert np.array_equal(reader.rows, [toy_logits(ids[: i + 1]) for i in range(19)])
    assert tokens_of(talker) == toy_answer([2], 20)
    engine.close()


@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        ([], RequestError, "no tokens to start from"),
        ([1, -1], RequestError, "token -1 at position 1"),
        ([VOCAB], RequestError, f"0..{VOCAB - 1}"),
        ([1] * 32, ContextExceededError, "32 tokens and leaves no room"),
    ],
)
def test_prompts_that_cannot_be_served(engine, prompt, error, message):
    with pytest.raises(error, match=message):
        engine.submit(ids_of(*prompt), ask())


def test_a_cancelled_request_ends_within_a_step_inside_its_prompt():
    gate = Gate()
    executable = ToyExecutable(before_run=gate)
    engine = toy_engine(executable, max_num_batched_tokens=8)
    request = engine.submit(ids_of(*range(31)), ask())
    assert gate.entered.acquire(timeout=10)
    engine.cancel(request)
    gate.open.release()
    with pytest.raises(CancelledError):
        tokens_of(request)
    assert executable.steps == 1
    assert engine.status().pages_used == 0
    engine.close()


def test_cancelling_what_has_ended_or_twice_changes_nothing(engine):
    request = engine.submit(ids_of(1), ask(2))
    tokens_of(request)
    engine.cancel(request)
    engine.cancel(request)
    assert tokens_of(engine.submit(ids_of(1), ask(2))) == toy_answer([1], 2)


def test_a_waiting_request_can_be_cancelled():
    gate = Gate()
    engine = toy_engine(ToyExecutable(before_run=gate), max_num_seqs=1)
    first, second = (engine.submit(ids_of(1), ask(1)) for _ in range(2))
    assert gate.entered.acquire(timeout=10)
    engine.cancel(second)
    gate.open.release()
    assert tokens_of(first) == toy_answer([1], 1)
    with pytest.raises(CancelledError):
        tokens_of(second)
    engine.close()


@pytest.mark.parametrize(
    ("raised", "seen"), [(ValueError("odd"), RequestError), (MemoryError(), ResourceError), (ResourceError("x"),) * 2]
)
def test_an_error_in_a_step_ends_its_requests_and_the_engine_lives(raised, seen):
    def fail(batch):
        if batch.ids[0] == 13:
            raise raised

    engine = toy_engine(ToyExecutable(before_run=fail))
    seen = seen if isinstance(seen, type) else type(seen)
    with pytest.raises(seen) as caught:
        tokens_of(engine.submit(ids_of(13), ask()))
    assert caught.value is raised or caught.value.__cause__ is raised
    assert tokens_of(engine.submit(ids_of(1), ask(3))) == toy_answer([1], 3)
    assert engine.status().pages_used == 0
    engine.close()


def test_a_row_without_finite_logits_ends_that_request_alone():
    class Broken(ToyExecutable):
        def run(self, batch, logits):
            super().run(batch, logits)
            beginnings = self._kv[batch.page_table[:, 0] * self.page_len]
            logits[beginnings[batch.seq_of[batch.logit_rows]] == 2] = np.nan

    engine = toy_engine(Broken())
    good, bad = (engine.submit(ids_of(token), ask()) for token in (1, 2))
    with pytest.raises(RequestError, match="no finite logit"):
        tokens_of(bad)
    assert tokens_of(good) == toy_answer([1], 31)
    assert engine.status().pages_used == 0
    engine.close()


def test_closing_ends_all_requests_frees_the_executable_and_may_be_done_twice():
    gate = Gate()
    executable = ToyExecutable(before_run=gate)
    engine = toy_engine(executable, max_num_seqs=1)
    requests = [engine.submit(ids_of(1), ask()) for _ in range(3)]
    assert gate.entered.acquire(timeout=10)
    gate.open.release()
    closer = threading.Thread(target=engine.close)
    closer.start()
    while closer.is_alive():
        gate.open.release()
        closer.join(0.01)
    engine.close()
    assert engine.closed
    assert executable.closed == 1
    assert not engine._thread.is_alive()
    for request in requests:
        with pytest.raises(CancelledError, match="closed"):
            tokens_of(request)
    with pytest.raises(RequestError, match="the model is closed"):
        engine.submit(ids_of(1), ask())


def test_an_engine_nobody_holds_stops_its_thread_and_frees_the_executable():
    executable = ToyExecutable()
    engine = toy_engine(executable)
    thread = engine._thread
    tokens_of(engine.submit(ids_of(1), ask(2)))
    del engine
    gc.collect()
    assert not thread.is_alive()
    assert executable.closed == 1


def test_an_idle_engine_sleeps(engine):
    tokens_of(engine.submit(ids_of(1), ask(2)))
    inbox, sleeps = engine._loop.inbox, []

    class Bell(type(inbox._bell)):
        def get(self, *limit):
            sleeps.append(limit)
            return super().get(*limit)

    old, inbox._bell = inbox._bell, Bell()
    old.put(None)
    wait_until(lambda: sleeps)
    tokens_of(engine.submit(ids_of(1), ask(2)))
    wait_until(lambda: len(sleeps) == 2)
    time.sleep(0.05)
    assert sleeps == [(), ()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_refused_and_can_still_end(engine):
    tokens_of(engine.submit(ids_of(1), ask(2)))
    child = os.fork()
    if child == 0:
        try:
            engine.submit(ids_of(1), ask())
        except RequestError as error:
            engine.close()
            os._exit(0 if "load it again" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tokens_of(engine.submit(ids_of(1), ask(2))) == toy_answer([1], 2)


def test_threads_that_submit_and_cancel_at_will_leave_nothing_behind():
    engine = toy_engine(ToyExecutable(n_pages=10), max_num_batched_tokens=9)
    wrong = []

    def client(seed):
        dice = random.Random(seed)
        for _ in range(12):
            prompt = [dice.randrange(VOCAB)] * dice.randint(1, 20)
            count = dice.randint(1, 12)
            request = engine.submit(ids_of(*prompt), ask(count))
            try:
                if dice.random() < 0.4:
                    engine.cancel(request)
                if tokens_of(request) != toy_answer(prompt, count):
                    wrong.append(prompt)
            except CancelledError:
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    engine._loop.scheduler.check_integrity()
    assert engine.status().pages_used == 0
    assert len(engine._loop.requests) == 0
    engine.close()
