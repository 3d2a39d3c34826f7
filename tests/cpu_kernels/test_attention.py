"""Attention over pages for shapes and options of all kinds, against the reference and against itself."""

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from tests.cpu_kernels.op_programs import SIZE, attention_program, build, reference
from tests.cpu_kernels.programs import PAGE_LEN, distance, poison
from tests.model.batches import run_all, step, whole_prompt_batches

# Relative L2. Measured: 6e-7 as a rule, 2.3e-6 at most, for scores far apart. The margin is for a machine whose matrix
# products, in the reference, round a key to the next half.
BUDGET = 2e-4
FLOATS = 1e-5
"""Of a store of floats, where nothing is rounded."""
PLAIN = {"heads": 4, "kv_heads": 2, "key_size": 32, "value_size": 32}
KINDS = {
    "plain": PLAIN,
    "one head": PLAIN | {"heads": 1, "kv_heads": 1},
    "as many kv heads": PLAIN | {"kv_heads": 4},
    "seven heads share one": PLAIN | {"heads": 7, "kv_heads": 1},
    "nine heads share three": PLAIN | {"heads": 9, "kv_heads": 3},
    "five heads share one": PLAIN | {"heads": 10},
    "more heads than walk together": PLAIN | {"heads": 70, "kv_heads": 1, "key_size": 8, "value_size": 8},
    "an odd size": PLAIN | {"key_size": 33, "value_size": 33},
    "five vectors": PLAIN | {"key_size": 80, "value_size": 80},
    "seven vectors": PLAIN | {"key_size": 112, "value_size": 112},
    "sizes of no vector": PLAIN | {"key_size": 20, "value_size": 20},
    "keys wider than values": PLAIN | {"key_size": 48, "value_size": 20},
    "values wider than keys": PLAIN | {"key_size": 8, "value_size": 100},
    "wide": PLAIN | {"key_size": 256, "value_size": 256},
    "soft cap": PLAIN | {"softcap": 5.0, "scale": 1.0},
    "far apart": PLAIN | {"scale": 30.0},
    "negative": PLAIN | {"scale": -1.0},
    **{f"window of {n}": PLAIN | {"window": n} for n in (1, 2, 15, 16, 17, 40, 1000)},
    "window, soft cap and odd sizes": {**PLAIN, "heads": 6, "value_size": 12, "window": 19, "softcap": 2.0},
    "sinks": PLAIN | {"heads": 6, "sinks": 2.0},
    "sinks that take all": PLAIN | {"sinks": 300.0},
    "sinks, window and soft cap": PLAIN | {"heads": 7, "kv_heads": 1, "sinks": 1.0, "window": 18, "softcap": 3.0},
}
IDS = np.arange(100) * 3
PAGES = [3, 7, 1, 0, 6, 2, 4]
TYPES = {
    "f16": KvTypes(),
    "q8_0/q4_0": KvTypes("q8_0", "q4_0"),
    "q4_0/q8_0": KvTypes("q4_0", "q8_0"),
    "f32": KvTypes("f32", "f32"),
}


OF_FLOATS = ("an odd size", "wide", "window, soft cap and odd sizes", "sinks")
"""Kinds that are tried with a store of floats, which is read like one of halves."""
PAIRS = [(kind, types) for types in TYPES for kind in KINDS if types != "f32" or kind in OF_FLOATS]


@pytest.fixture(params=PAIRS, ids=" in ".join)
def pair(request):
    return request.param


@pytest.fixture
def types(pair):
    return TYPES[pair[1]]


@pytest.fixture
def program(pair, types):
    return attention_program(np.random.default_rng(5), **KINDS[pair[0]], exact=types != KvTypes())


@pytest.fixture
def runners(program, types):
    made = [build(*program, threads=threads, kv=types) for threads in (1, 2)]
    for runner in made:
        poison(runner)
    yield made
    for runner in made:
        runner.close()


def test_near_the_reference_and_equal_to_the_bit_in_any_chunks(program, runners, types):
    whole = run_all(runners[0], whole_prompt_batches(IDS, PAGE_LEN, [100]), SIZE)
    expected = run_all(reference(*program, kv=types), whole_prompt_batches(IDS, PAGE_LEN, [100]), SIZE)
    assert distance(whole, expected) < (FLOATS if types == TYPES["f32"] else BUDGET)
    for chunks in ([1], [8], [7, 9, 30, 3]):
        for runner in runners:
            poison(runner)
            assert np.array_equal(run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks, PAGES), SIZE), whole)


def test_sequences_in_one_step_do_not_see_each_other(runners):
    """Sequences end within a tile of eight tokens, so tiles by token and tiles by head stand side by side."""
    parts = [(IDS[:13], [0]), (IDS[50:71], [5, 2]), (IDS[20:23], [4]), (IDS[30:38], [7])]
    alone = [run_all(runners[0], [step([(ids, 0, pages)], PAGE_LEN)], SIZE) for ids, pages in parts]
    for runner in runners:
        poison(runner)
        together = run_all(runner, [step([(ids, 0, pages) for ids, pages in parts], PAGE_LEN)], SIZE)
        assert np.array_equal(together, np.concatenate(alone))
