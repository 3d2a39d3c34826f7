"""What is kept of logits, and what counts as near."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.runtime.golden.replay import compare_rows
from halfbyte.runtime.golden.rows import choose_columns, summarise
from halfbyte.runtime.golden.tolerance import Tolerance
from halfbyte.runtime.golden.vectors import GoldenVectors

T, V = 12, 5000


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(3, 2, (T, V)).astype(np.float32)


@pytest.fixture
def columns():
    return choose_columns(V)


def verdicts(logits, got, columns, tolerance):
    golden = GoldenVectors((), (), 0, np.zeros(0), np.zeros(T), summarise(logits, columns))
    return [finding.ok for finding in compare_rows(golden, got, tolerance)]


def test_the_summary_is_of_whole_rows(logits, columns):
    rows = summarise(logits, columns)
    ordered = np.sort(logits, axis=1)
    assert rows.best.tolist() == logits.argmax(axis=1).tolist()
    np.testing.assert_allclose(rows.margin, ordered[:, -1] - ordered[:, -2])
    np.testing.assert_allclose(rows.spread, logits.std(axis=1), rtol=1e-4)
    assert rows.sample.tolist() == logits[:, columns].tolist()


@pytest.mark.parametrize("move", [lambda x: x + 0.1, lambda x: x * 1.03, lambda x: x[:, ::-1], lambda x: x[::-1]])
def test_distances_see_shifts_scales_and_exchanged_columns_and_rows(logits, columns, move):
    rows = summarise(logits, columns)
    assert (rows.distances(summarise(np.ascontiguousarray(move(logits)), columns)) > 0.04).all()
    assert (rows.distances(rows) == 0).all()


def test_another_likeliest_column_is_allowed_where_the_second_is_as_near_as_errors_are(logits, columns):
    logits[:, 7] = logits[:, 8] = 15
    logits[:, 8] -= np.linspace(0.001, 0.1, T, dtype=np.float32)  # a spread is 2, so 0.0005 to 0.05 of it
    got = logits.copy()
    got[:, [7, 8]] = logits[:, [8, 7]]
    assert (got.argmax(axis=1) == 8).all()
    assert verdicts(logits, got, columns, Tolerance(0.01)) == [row <= 4 for row in range(T)]


def test_a_share_of_rows_may_be_exempt_but_none_that_is_no_number(logits, columns):
    got = logits.copy()
    got[:3] += 1
    assert verdicts(logits, got, columns, Tolerance(0.01)) == [False] * 3 + [True] * 9
    assert all(verdicts(logits, got, columns, Tolerance(0.01, exempt=0.25)))
    got[3] += 1
    assert verdicts(logits, got, columns, Tolerance(0.01, exempt=0.25)) == [False] * 4 + [True] * 8
    got = logits.copy()
    got[5] = np.inf
    assert verdicts(logits, got, columns, Tolerance(0.01, exempt=0.25)) == [row != 5 for row in range(T)]


def test_one_column_is_enough_to_be_a_row():
    rows = summarise(np.ones((2, 1), np.float32), choose_columns(1))
    assert rows.best.tolist() == [0, 0]
    assert (rows.distances(rows) == 0).all()
