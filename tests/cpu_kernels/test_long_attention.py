"""Attention over many pieces of keys: whoever walks them, the answer is the same to the bit."""

import numpy as np
import pytest

from halfbyte.cpu_kernels.instruction import PARTIAL_BYTES, PIECE
from halfbyte.model.kv_types import KvTypes
from tests.cpu_kernels.op_programs import SIZE, attention_program, build, reference
from tests.cpu_kernels.programs import PAGE_LEN, distance, poison
from tests.model.batches import run_all, step, whole_prompt_batches

# Relative L2; measured: 5.5e-7 at most.
BUDGET = 2e-4
LENGTH, N_PAGES = 2 * PIECE + 90, 80
IDS = np.random.default_rng(3).integers(0, SIZE, LENGTH)
PAGES = np.random.default_rng(4).permutation(N_PAGES)[: -(-LENGTH // PAGE_LEN)].tolist()
PLAIN = {"heads": 6, "kv_heads": 2, "key_size": 32, "value_size": 32}
KINDS = {
    "plain": PLAIN,
    "q8_0/q4_0": PLAIN | {"kv": KvTypes("q8_0", "q4_0")},
    "q4_0/q8_0": PLAIN | {"kv": KvTypes("q4_0", "q8_0")},
    "one kv head": {"heads": 3, "kv_heads": 1, "key_size": 20, "value_size": 36},
    "window over a border": {"heads": 4, "kv_heads": 2, "key_size": 16, "value_size": 16, "window": PIECE + 20},
    "window within a piece": {"heads": 4, "kv_heads": 1, "key_size": 16, "value_size": 16, "window": 30},
    "f32": PLAIN | {"kv": KvTypes("f32", "f32")},
    "sinks": PLAIN | {"sinks": 2.0},
    "soft cap": {"heads": 2, "kv_heads": 2, "key_size": 16, "value_size": 16, "softcap": 5.0, "scale": 1.0},
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def program(kind):
    options = {name: value for name, value in kind.items() if name != "kv"}
    return attention_program(np.random.default_rng(5), **options, exact="kv" in kind)


@pytest.fixture
def runners(program, kind):
    made = [build(*program, threads=threads, n_pages=N_PAGES, kv=kind.get("kv")) for threads in (1, 2, 5)]
    for runner in made:
        poison(runner)
    yield made
    for runner in made:
        runner.close()


def answers(runner, chunks):
    return run_all(runner, whole_prompt_batches(IDS, PAGE_LEN, chunks, PAGES), SIZE)


def test_near_the_reference_and_equal_to_the_bit_in_any_chunks(program, runners, kind):
    whole = answers(runners[0], [330, 330])
    expected = answers(reference(*program, N_PAGES, kind.get("kv")), [330, 330])
    assert distance(whole, expected) < BUDGET
    for runner in runners:
        for chunks in ([250, 20, 260, 40, 1], [300, 300, 2]):
            poison(runner)
            assert np.array_equal(answers(runner, chunks), whole)


def test_threads_share_the_pieces_of_few_rows_and_leave_no_count_behind(program, runners):
    runner = runners[2]
    answers(runner, [300, 300, 1])
    placed = runner._placed
    shared = placed.arena.view(placed.shared, (5 * (64 + PARTIAL_BYTES),), np.uint8)
    assert not shared[: 5 * 64].any()
    assert shared[5 * 64 :].any()


def test_sequences_of_all_lengths_in_one_step(runners):
    """Long and short ones, some with several tokens, share a step in which long ones are cut into pieces."""
    for runner in runners:
        poison(runner)
    whole = answers(runners[0], [330, 330])
    spare = sorted(set(range(N_PAGES)) - set(PAGES))
    for runner in runners:
        answers(runner, [300, 300, 2])
        together = step([(IDS[:3], 0, spare[:1]), (IDS[-4:], LENGTH - 4, PAGES), (IDS[:20], 0, spare[1:3])], PAGE_LEN)
        expected = np.concatenate([whole[:3], whole[-4:], whole[:20]])
        assert np.array_equal(run_all(runner, [together], SIZE), expected)
