"""A model of no weights: logits are a hash of all tokens before, read through the page table as attention would."""

from __future__ import annotations

import threading
import time
from dataclasses import fields

import numpy as np

from halfbyte.runtime.engine import Ask, Engine
from halfbyte.runtime.limits import EngineLimits
from halfbyte.runtime.sampling.params import SamplingParams

VOCAB = 50
LIMITS = {field.name for field in fields(EngineLimits)}
EMPTY = -1


class ToyExecutable:
    """Checks the whole contract of `StepBatch` in every step; `before_run(batch)` may wait, count or raise.

    With a `memory` only so many tokens count, so that answers repeat themselves.
    """

    def __init__(self, *, n_pages: int = 16, page_len: int = 4, before_run=lambda batch: None, memory: int = 0) -> None:
        self.n_pages = n_pages
        self.page_len = page_len
        self.page_bytes = 8 * page_len
        self.before_run = before_run
        self.memory = memory
        self.steps = 0
        self.closed = 0
        self._kv = np.full(n_pages * page_len, EMPTY, np.int64)

    def run(self, batch, logits) -> None:
        self.before_run(batch)
        self.steps += 1
        assert logits.shape == (len(batch.logit_rows), VOCAB)
        assert logits.flags.c_contiguous
        self._kv[batch.slots] = batch.ids
        histories = [self._history(batch, s) for s in range(len(batch.seq_len))]
        assert sorted(set(batch.seq_of.tolist())) == list(range(len(batch.seq_len)))
        for row, t in enumerate(batch.logit_rows):
            history = histories[batch.seq_of[t]][: batch.positions[t] + 1]
            logits[row] = toy_logits(history[-self.memory :])

    def _history(self, batch, s):
        length = batch.seq_len[s]
        pages = batch.page_table[s]
        used = -(-length // self.page_len)
        assert (pages[:used] >= 0).all()
        assert (pages[used:] == -1).all()
        slots = pages[np.arange(length) // self.page_len] * self.page_len + np.arange(length) % self.page_len
        mine = np.flatnonzero(batch.seq_of == s)
        assert mine.tolist() == list(range(mine[0], mine[-1] + 1))
        assert batch.positions[mine].tolist() == list(range(length - len(mine), length))
        assert np.array_equal(batch.slots[mine], slots[length - len(mine) :])
        history = self._kv[slots]
        assert (history != EMPTY).all()
        return history

    def top_k(self, logits, k):
        logits = np.where(np.isnan(logits), -np.inf, logits)
        ids = np.argsort(-logits, kind="stable")[:k].astype(np.int32)
        return ids, logits[ids]

    def expect(self, ks) -> None:
        """The toy finds them when it is asked."""

    def top_k_rows(self, logits, ks):
        return [self.top_k(row, k) if k else None for row, k in zip(logits, ks, strict=True)]

    def copy_page(self, source, target) -> None:
        self._slots_of(target)[:] = self._slots_of(source)

    def read_page(self, page, out) -> None:
        assert out.shape == (self.page_bytes,)
        out[:] = self._slots_of(page).view(np.uint8)

    def write_page(self, page, data) -> None:
        assert data.shape == (self.page_bytes,)
        self._slots_of(page)[:] = data.view(np.int64)

    def _slots_of(self, page):
        return self._kv[page * self.page_len : (page + 1) * self.page_len]

    def trace(self, on) -> None:
        self.tracing = on

    def spans(self):
        return []

    def info(self):
        return {"isa": "toy", "kernels": "toy", "threads": 1, "packed_bytes": 0, "kv_bytes": 0}

    def close(self) -> None:
        self.closed += 1


def toy_logits(history):
    return np.random.default_rng(history).standard_normal(VOCAB).astype(np.float32)


def toy_answer(prompt, count):
    """What a greedy answer must be."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(toy_logits(np.array(ids)).argmax()))
    return ids[len(prompt) :]


def toy_engine(executable=None, *, context=32, vocab_size=VOCAB, **options) -> Engine:
    limits = {name: options.pop(name) for name in LIMITS & options.keys()}
    if "max_num_batched_tokens" in limits:
        limits.setdefault("max_num_seqs", min(8, limits["max_num_batched_tokens"]))
    return Engine(
        executable or ToyExecutable(), vocab_size=vocab_size, limits=EngineLimits(context=context, **limits), **options
    )


def ids_of(*tokens) -> np.ndarray:
    return np.array(tokens, np.int32)


GREEDY = SamplingParams()


def ask(max_tokens=None, **more) -> Ask:
    """A greedy answer."""
    return Ask(more.pop("params", GREEDY), max_tokens, **more)


def tokens_of(request) -> list[int]:
    """All tokens of a request, waited for."""
    tokens = []
    while True:
        emission = request.receive()
        if emission.chosen is not None:
            tokens.append(emission.chosen.token)
        if emission.ended:
            return tokens


def wait_until(condition, seconds=10.0):
    """Give another thread time to do what it must; the limit only ends a test that would hang."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.001)


class Gate:
    """Holds the engine inside a step until opened."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    def __call__(self, batch):
        self.entered.release()
        assert self.open.acquire(timeout=10)
