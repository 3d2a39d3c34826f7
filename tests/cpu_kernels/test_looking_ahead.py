"""Attention of encoders: every token sees its whole sequence, and nothing of its neighbours."""

from itertools import pairwise

import numpy as np
import pytest

from tests.cpu_kernels.op_programs import SIZE, attention_program, build, reference
from tests.cpu_kernels.programs import PAGE_LEN, distance, poison
from tests.model.batches import run_all, step

BUDGET = 2e-4
PLAIN = {"heads": 4, "kv_heads": 2, "key_size": 32, "value_size": 32}
KINDS = {
    "plain": PLAIN,
    "as many kv heads": PLAIN | {"kv_heads": 4},
    "one head": PLAIN | {"heads": 1, "kv_heads": 1},  # so few that five threads cut a long sequence into pieces
    "odd sizes": PLAIN | {"key_size": 20, "value_size": 36},
    "sinks and soft cap": PLAIN | {"sinks": 1.0, "softcap": 4.0},
}
N_PAGES = 40
LENGTHS = (1, 15, 16, 17, 40, 100, 130)
"""Of the sequences that share a step."""


@pytest.fixture(params=list(KINDS))
def program(request):
    return attention_program(np.random.default_rng(5), **KINDS[request.param], causal=False)


@pytest.fixture
def runners(program):
    made = [build(*program, threads=threads, n_pages=N_PAGES) for threads in (1, 2, 5)]
    for runner in made:
        poison(runner)
    yield made
    for runner in made:
        runner.close()


def sequences(rng, lengths):
    pages, found = rng.permutation(N_PAGES).tolist(), []
    for length in lengths:
        own, pages = pages[: -(-length // PAGE_LEN)], pages[-(-length // PAGE_LEN) :]
        found.append((rng.integers(0, SIZE, length), 0, own))
    return found


def test_near_the_reference_and_the_same_bits_alone_and_in_company(program, runners, rng):
    parts = sequences(rng, LENGTHS)
    expected = run_all(reference(*program, N_PAGES), [step(parts, PAGE_LEN)], SIZE)
    alone = np.concatenate([run_all(runners[0], [step([part], PAGE_LEN)], SIZE) for part in parts])
    assert distance(alone, expected) < BUDGET
    for runner in runners:
        for some in (parts, parts[::-1]):
            poison(runner)
            together = run_all(runner, [step(some, PAGE_LEN)], SIZE)
            ends = np.cumsum([0, *(len(ids) for ids, _, _ in some)])
            mine = [together[a:b] for a, b in pairwise(ends)]
            assert np.array_equal(np.concatenate(mine if some is parts else mine[::-1]), alone)


def test_a_long_sequence(program, runners, rng):
    batch = step(sequences(rng, [SIZE]), PAGE_LEN)
    expected = run_all(reference(*program, N_PAGES), [batch], SIZE)
    whole = run_all(runners[0], [batch], SIZE)
    assert distance(whole, expected) < BUDGET
    for runner in runners[1:]:
        poison(runner)
        assert np.array_equal(run_all(runner, [batch], SIZE), whole)


def test_the_first_token_sees_the_last(runners, rng):
    (ids, start, pages), *_ = sequences(rng, [50])
    other = np.where(np.arange(50) == 49, (ids + 1) % SIZE, ids)
    one, two = (run_all(runners[0], [step([(seen, start, pages)], PAGE_LEN)], SIZE)[0] for seen in (ids, other))
    assert not np.array_equal(one, two)
