"""The k best logits, against a sort in NumPy."""

import numpy as np
import pytest

from halfbyte.model.program import Scale
from tests.cpu_kernels.op_programs import SHOW, SIZE, build, on_table
from tests.cpu_kernels.products import batch_of


@pytest.fixture(scope="module")
def runner():
    table = np.random.default_rng(3).integers(-40, 40, (SIZE, SIZE)) / 4
    table[5, ::7] = np.nan
    made = build(*on_table(table, Scale("x", "y", 1.0), *SHOW), threads=2)
    yield made
    made.close()


def sorted_best(logits, k):
    """Ids and values, best first, the lower id first among equals; NaN and -inf left out."""
    order = np.argsort(-logits, kind="stable")
    order = order[logits[order] > -np.inf][:k]
    return order, logits[order]


def check(runner, logits, k):
    logits = np.asarray(logits, np.float32)
    kept = logits.copy()
    ids, values = runner.top_k(logits, k)
    expected = sorted_best(logits, k)
    assert (ids.dtype, values.dtype) == (np.int32, np.float32)
    assert np.array_equal(ids, expected[0])
    assert np.array_equal(values, expected[1])
    assert np.array_equal(logits, kept, equal_nan=True)


@pytest.mark.parametrize("k", [1, 2, 40, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 100, 1024, 4096, 4111])
def test_the_best_of_random_logits(runner, size, k, rng):
    check(runner, rng.standard_normal(size), k)


@pytest.mark.parametrize("k", [1, 7, 40, 1024, 2000])
def test_among_equals_the_lower_id_comes_first(runner, k, rng):
    check(runner, rng.integers(0, 5, 3001), k)
    check(runner, np.zeros(3001), k)
    check(runner, np.where(rng.random(500) < 0.5, 0.0, -0.0), k)


@pytest.mark.parametrize("k", [1, 40, 1024, 1500])
@pytest.mark.parametrize("size", [33, 3001])
def test_what_is_no_number_is_never_chosen(runner, size, k, rng):
    logits = rng.standard_normal(size)
    logits[rng.random(size) < 0.4] = np.nan
    logits[rng.random(size) < 0.3] = -np.inf
    logits[rng.random(size) < 0.1] = np.inf
    check(runner, logits, k)
    check(runner, np.full(size, np.nan), k)
    check(runner, np.full(size, -np.inf), k)
    check(runner, np.full(size, -3.4e38), k)


@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_sorted_logits(runner, order):
    check(runner, np.arange(5000)[::order], 40)


def test_a_row_of_a_matrix_and_a_row_with_steps(runner, rng):
    logits = rng.standard_normal((3, 4001)).astype(np.float32)
    check(runner, logits[1], 40)
    check(runner, logits[:, 5], 2)
    assert np.array_equal(runner.top_k(logits[::2].T[:, 1], 9)[0], sorted_best(logits[2], 9)[0])


def test_answers_are_the_callers_own(runner, rng):
    first, second = rng.standard_normal((2, 500)).astype(np.float32)
    ids, values = runner.top_k(first, 10)
    kept = ids.copy(), values.copy()
    runner.top_k(second, 10)
    assert np.array_equal(ids, kept[0])
    assert np.array_equal(values, kept[1])


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("tokens", [1, 3, 9, 64, 65])
def test_the_logits_of_a_step_are_selected_by_their_peaks_as_by_all_of_them(runner, tokens, expected):
    logits = np.empty((tokens, SIZE), np.float32)
    ks = [[1, 2, 40, 300, 333, 0][token % 6] for token in range(tokens)]
    for _ in range(2):
        if expected:
            runner.expect(ks)
        runner.run(batch_of(np.arange(tokens) % SIZE), logits)
        for row, k, best in zip(logits, ks, runner.top_k_rows(logits, ks), strict=True):
            assert (best is None) == (k == 0)
            if k:
                assert np.array_equal(best[0], sorted_best(row, k)[0])
                assert np.array_equal(best[1], row[best[0]])


def test_what_was_expected_of_one_step_is_not_taken_for_the_next_one(runner):
    logits = np.empty((2, SIZE), np.float32)
    runner.expect([1, 1])
    runner.run(batch_of([3, 4]), logits)
    assert [len(best[0]) for best in runner.top_k_rows(logits, [2, 3])] == [2, 3]
    runner.run(batch_of([7, 8]), logits)
    for row, best in zip(logits, runner.top_k_rows(logits, [1, 1]), strict=True):
        assert best[0] == row.argmax()


def test_rows_are_selected_side_by_side_each_with_its_own_k(runner):
    logits = np.random.default_rng(8).standard_normal((9, 1000)).astype(np.float32)
    logits[4] = np.nan
    ks = [1, 0, 40, 7, 5, 0, 1000, 1024, 3]
    found = runner.top_k_rows(logits, ks)
    assert [best is None for best in found] == [k == 0 for k in ks]
    for row, k, best in zip(logits, ks, found, strict=True):
        if k:
            assert np.array_equal(best[0], sorted_best(row, k)[0])
            assert np.array_equal(best[1], row[best[0]])
