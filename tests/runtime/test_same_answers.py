"""Real programs on real kernels: the logits of a request are the same bits alone and in any company."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pytest

import halfbyte
from halfbyte.runtime.sequence import Sequence
from tests.model.tiny import tiny_model

ARCHS = ("llama", "gemma3", "lfm2")
"""Without windows, with some, and with filters that look back at the last tokens."""
BEGINNINGS = [[(k * i * i + 5 * i) % 250 for i in range(90)] for k in (11, 12, 13)]
TEXT = BEGINNINGS[0]
DRAWN = {"temperature": 1.2, "top_k": 30, "repeat_penalty": 1.1}
CROWDED = {
    "recomputed": {"pages": 16, "max_num_batched_tokens": 23},
    "swapped": {"pages": 16, "max_num_batched_tokens": 64, "swap_space": "8MB"},
    "without a cache": {"pages": 30, "max_num_batched_tokens": 7, "max_num_seqs": 3, "prefix_cache": False},
    "all at once": {"pages": 200, "max_num_batched_tokens": 200, "max_num_seqs": 16},
}


class Recorder:
    """Keeps every row of logits that a sequence chose by."""

    def __init__(self, monkeypatch):
        self.rows = defaultdict(list)
        grow = Sequence.grow

        def recorded(sequence, rows, *more):
            seen = rows.copy()  # samplers may write to them
            chosen = grow(sequence, rows, *more)
            self.rows[sequence.arrival] += [*seen[: len(chosen)]]
            return chosen

        monkeypatch.setattr(Sequence, "grow", recorded)

    def of(self, stream):
        """f32[answer, V], once it has ended."""
        ids = stream.collect().ids
        rows = np.array(self.rows[stream._assembly.request.sequence.arrival])
        assert len(rows) >= max(len(ids), 1)
        return rows


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


@pytest.fixture(scope="module", params=ARCHS)
def path(request, tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp(request.param), request.param)


def load(path, **options):
    return halfbyte.load(path, **{"backend": "cpu", "context": 128, "threads": 2, **options})


def asked(seed):
    """Prompts that begin alike and end differently, long and short."""
    draw = random.Random(seed)
    for number in range(12):
        start = draw.choice(BEGINNINGS)[: draw.choice([0, 17, 48, 83, 90])]
        prompt = start + [draw.randrange(250) for _ in range(draw.randint(1, 12))]
        yield prompt, {"max_tokens": draw.randint(10, 25), "seed": number, **DRAWN}


@pytest.fixture(scope="module")
def alone(path):
    """Rows of each prompt and answer, read in one piece by an engine that does nothing else."""
    with pytest.MonkeyPatch.context() as monkeypatch, load(path, prefix_cache=False) as llm:
        recorder = Recorder(monkeypatch)
        answers = [recorder.of(llm.stream(prompt, **options)) for prompt, options in asked(1)]
        return answers, llm.logits(TEXT), llm._engine.page_bytes


@contextmanager
def held(llm):
    """The engine does nothing in the meantime, so that all that is asked for begins together."""
    inside, go = threading.Event(), threading.Event()
    holder = threading.Thread(target=llm._engine.call, args=(lambda loop: (inside.set(), go.wait(60)),))
    holder.start()
    inside.wait(60)
    yield
    go.set()
    holder.join(60)


@pytest.mark.parametrize("crowd", CROWDED)
def test_logits_are_the_same_bits_in_any_company(path, alone, recorder, crowd):
    answers, read, page_bytes = alone
    options = dict(CROWDED[crowd])
    pages = options.pop("pages")
    with load(path, kv_memory=pages * page_bytes, **options) as llm:
        with held(llm):
            streams = [llm.stream(prompt, **more) for prompt, more in asked(1)]
        assert np.array_equal(llm.logits(TEXT), read)
        for stream, expected in zip(streams, answers, strict=True):
            assert np.array_equal(recorder.of(stream), expected)
        prompt, more = list(asked(1))[-1]
        assert np.array_equal(recorder.of(llm.stream(prompt, **more)), answers[-1])
        metrics = llm.metrics()
    assert (metrics.cached_tokens > 0) == options.get("prefix_cache", True)
    if crowd in ("recomputed", "swapped"):
        assert metrics.preempted["swap" if crowd == "swapped" else "recompute"] > 0


def test_branches_get_the_bits_that_a_prompt_of_their_own_would(path, recorder):
    prompt, greedy = TEXT[:37], {"max_tokens": 24, "temperature": 0.0}
    with load(path, max_num_batched_tokens=16) as llm:
        trunk = llm.stream(prompt, **greedy)
        taken = []
        while len(taken) < 9:
            taken += next(trunk).ids
        branches = [trunk.fork(**DRAWN, seed=seed, max_tokens=8) for seed in range(5)]
        others = [llm.stream(text, **more) for text, more in asked(2)]
        rows = [recorder.of(branch) for branch in branches]
        for other in others:
            other.close()
    with load(path, prefix_cache=False) as llm:
        for seed, expected in enumerate(rows):
            stream = llm.stream(prompt + taken, **DRAWN, seed=seed, max_tokens=8)
            assert np.array_equal(recorder.of(stream), expected)
