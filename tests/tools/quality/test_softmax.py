"""Surprise and divergence of single rows against float64 written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halfbyte.tools.quality.softmax import Softmax


def log_softmax(row):
    shifted = row.astype(np.float64) - row.max()
    return shifted - np.log(np.exp(shifted).sum())


@pytest.fixture(params=[(3, 1.0), (300, 5.0), (262144, 12.0)], ids=str)
def rows(request):
    size, spread = request.param
    rng = np.random.default_rng(size)
    return rng.normal(3, spread, (2, size)).astype(np.float32)


def test_surprise_and_divergence_are_those_of_float64(rows):
    base, model = log_softmax(rows[0]), log_softmax(rows[1])
    expected = float((np.exp(base) * (base - model)).sum())
    assert Softmax.of(rows[0]).divergence(Softmax.of(rows[1])) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert Softmax.of(rows[0]).surprise(1) == pytest.approx(-base[1], abs=1e-5)
    assert Softmax.of(rows[0]).best == rows[0].argmax()


def test_equal_rows_do_not_diverge(rows):
    assert Softmax.of(rows[0]).divergence(Softmax.of(rows[0].copy())) == 0.0
    assert Softmax.of(rows[0]).divergence(Softmax.of(rows[0] + np.float32(8))) < 1e-6


def test_nearly_equal_rows_diverge_little_and_never_negatively():
    rng = np.random.default_rng(5)
    for _ in range(200):
        row = rng.normal(0, 4, 1000).astype(np.float32)
        near = row + rng.normal(0, 1e-6, 1000).astype(np.float32)
        assert 0.0 <= Softmax.of(row).divergence(Softmax.of(near)) < 1e-6


def test_among_equals_the_lower_token_is_the_likeliest():
    assert Softmax.of(np.array([1, 7, 7, 2], np.float32)).best == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_logit_that_is_no_number_shows_in_the_total(bad):
    assert math.isnan(Softmax.of(np.array([1, bad, 2], np.float32)).total)
