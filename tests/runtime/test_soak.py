"""Thousands of random requests from several threads over pages that are far too few: nothing is lost, all is right."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest

from halfbyte.errors import CancelledError, DeadlineExceededError, KvBudgetExceededError, QueueFullError
from halfbyte.runtime.reader import KeepRows
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.toy import (
    VOCAB,
    ToyExecutable,
    ask,
    ids_of,
    tokens_of,
    toy_answer,
    toy_engine,
    toy_logits,
    wait_until,
)

PAGE_LEN, N_PAGES, CONTEXT = 4, 34, 128
THREADS, REQUESTS = 4, 500
BEGINNINGS = [[i * j % VOCAB for j in range(90)] for i in range(1, 8)]
DRAWN = {"temperature": 1.3, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.2}


class Client:
    """Asks for something random again and again, with several requests open, and checks what it gets."""

    def __init__(self, engine, seed, count):
        self.engine, self.draw, self.count = engine, random.Random(seed), count
        self.open, self.drawn, self.refs, self.errors = [], [], [], []
        self.sent = self.ended = self.full = self.too_large = 0

    def run(self):
        try:
            while self.sent < self.count:
                self.draw.choice(
                    [self.answer, self.answer, self.cut_short, self.fork, self.several, self.read, self.late]
                )()
                while len(self.open) > self.draw.randint(0, 6):
                    self.open.pop(self.draw.randrange(len(self.open)))()
                if self.draw.random() < 0.02:
                    self.ask_too_much()
            while self.open:
                self.open.pop()()
        except BaseException as error:
            self.errors.append(error)

    def prompt(self):
        start = self.draw.choice(BEGINNINGS)[: self.draw.choice([0, 5, 12, 40, 80, 90])]
        return start + [self.draw.randrange(VOCAB) for _ in range(self.draw.randint(1, 9))]

    def submit(self, method, *args, **more):
        """Send until the queue takes it."""
        more.setdefault("priority", self.draw.randint(-1, 1))
        while True:
            try:
                requests = method(*args, **more)
            except QueueFullError:
                self.full += 1
                if self.open:
                    self.open.pop(0)()
                continue
            self.sent += len(requests)
            self.refs += [weakref.ref(request) for request in requests]
            return requests

    def send(self, prompt, **more):
        return self.submit(lambda **m: [self.engine.submit(ids_of(*prompt), ask(**m))], **more)[0]

    def answer(self):
        prompt, count = self.prompt(), self.draw.randint(1, 24)
        if self.draw.random() < 0.7:
            self.expect(self.send(prompt, max_tokens=count), toy_answer(prompt, count))
            return
        params = SamplingParams(**DRAWN, seed=self.draw.randrange(1000))
        request = self.send(prompt, max_tokens=count, params=params)
        self.open.append(lambda: self.drawn.append((prompt, count, params, tokens_of(request))))

    def several(self):
        prompt, counts = self.prompt(), [self.draw.randint(1, 8) for _ in range(3)]

        def method(priority):
            return self.engine.submit_all(ids_of(*prompt), [ask(count, priority=priority) for count in counts])

        for request, count in zip(self.submit(method), counts, strict=True):
            self.expect(request, toy_answer(prompt, count))

    def cut_short(self):
        prompt, taken = self.prompt(), self.draw.randint(0, 3)
        request = self.send(prompt, max_tokens=24)

        def cancel():
            tokens = [request.receive().chosen.token for _ in range(taken)]
            self.engine.cancel(request)
            with suppress(CancelledError):
                tokens += tokens_of(request)
            assert tokens == toy_answer(prompt, len(tokens))

        self.open.append(cancel)

    def fork(self):
        prompt, taken, count = self.prompt(), self.draw.randint(1, 6), self.draw.randint(1, 6)
        parent = self.send(prompt, max_tokens=8)
        tokens = [parent.receive().chosen.token for _ in range(taken)]
        length = len(prompt) + self.draw.randint(0, taken)
        begun = (prompt + tokens)[:length]
        child = self.submit(lambda **more: [self.engine.fork(parent, length, ask(count, **more))])[0]
        self.expect(child, toy_answer(begun, count))
        self.expect(parent, toy_answer(prompt, 8)[taken:])

    def read(self):
        prompt = self.prompt()
        reader = KeepRows(len(prompt), VOCAB)
        request = self.submit(lambda priority: [self.engine.read(ids_of(*prompt), reader)])[0]

        def check():
            tokens_of(request)
            expected = [toy_logits(ids_of(*prompt[: end + 1]).astype(np.int64)) for end in range(len(prompt))]
            assert np.array_equal(reader.rows, expected)

        self.open.append(check)

    def late(self):
        prompt = self.prompt()
        request = self.send(prompt, max_tokens=10, timeout=self.draw.choice([1e-4, 3e-3, 0.05]))

        def check():
            with suppress(DeadlineExceededError):
                assert tokens_of(request) == toy_answer(prompt, 10)

        self.open.append(check)

    def ask_too_much(self):
        self.too_large += 1
        with pytest.raises(KvBudgetExceededError):
            self.engine.submit(ids_of(*range(N_PAGES)), ask(N_PAGES * PAGE_LEN))

    def expect(self, request, tokens):
        def check():
            assert tokens_of(request) == tokens

        self.open.append(check)


def check_every_step(engine, errors):
    """Whoever iterates would be told that a step failed, and not by what."""
    scheduler = engine._loop.scheduler
    commit = scheduler.commit

    def checked(plan):
        commit(plan)
        try:
            scheduler.check_integrity()
        except AssertionError as error:
            errors.append(error)

    scheduler.commit = checked


def alone(prompt, count, params):
    engine = toy_engine(ToyExecutable(n_pages=64), context=CONTEXT, prefix_cache=False)
    try:
        return tokens_of(engine.submit(ids_of(*prompt), ask(count, params=params)))
    finally:
        engine.close()


@pytest.mark.parametrize("swap_space", [0, 60 * 8 * PAGE_LEN], ids=["recompute", "swap"])
@pytest.mark.parametrize("prefix_cache", [False, True], ids=["no cache", "cache"])
def test_after_thousands_of_requests_nothing_is_left_and_every_answer_was_right(swap_space, prefix_cache):
    limits = {"context": 2 * CONTEXT, "max_num_seqs": 4, "max_num_batched_tokens": 40, "max_queued": 5}
    executable = ToyExecutable(n_pages=N_PAGES, page_len=PAGE_LEN)
    engine = toy_engine(executable, swap_space=swap_space, prefix_cache=prefix_cache, **limits)
    errors = []
    check_every_step(engine, errors)
    clients = [Client(engine, seed, REQUESTS // THREADS) for seed in range(THREADS)]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*errors, *(error for client in clients for error in client.errors)] == []

    wait_until(lambda: engine._loop.scheduler.idle)
    engine.call(lambda loop: loop.scheduler.check_integrity())
    metrics, scheduler = engine.metrics(), engine._loop.scheduler
    assert metrics.pages_free + metrics.pages_cached == N_PAGES
    assert scheduler.swap.available == swap_space // executable.page_bytes
    assert len(engine._loop.requests) == 0
    assert sum(metrics.ended.values()) == sum(client.sent for client in clients) >= REQUESTS
    assert metrics.ended["failed"] == 0
    assert metrics.ended["cancelled"] > 0
    assert metrics.ended["deadline"] > 0
    assert metrics.rejected["queue_full"] == sum(client.full for client in clients)
    assert metrics.rejected["kv_budget_exceeded"] == sum(client.too_large for client in clients)
    assert metrics.preempted["swap" if swap_space else "recompute"] > 0
    assert bool(metrics.pages_cached) == prefix_cache
    for prompt, count, params, tokens in [drawn for client in clients for drawn in client.drawn]:
        assert tokens == alone(prompt, count, params)
    tokens_of(engine.submit(ids_of(1), ask(1)))
    refs = [ref for client in clients for ref in client.refs]
    clients.clear()
    gc.collect()
    assert [ref for ref in refs if ref() is not None] == []
    engine.close()
