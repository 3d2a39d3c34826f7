"""The recent past in constant memory."""

from __future__ import annotations

import pytest

from halfbyte.runtime.metrics.metrics import Percentiles
from halfbyte.runtime.metrics.windows import MOST_VALUES, RATE_S, LastValues, Rate


def test_percentiles_are_values_that_occurred():
    values = LastValues()
    assert values.percentiles() == Percentiles(0.0, 0.0, 0.0, 0)
    for value in range(100, -1, -1):
        values.add(float(value))
    assert values.percentiles() == Percentiles(50.0, 90.0, 99.0, 101)


def test_old_values_make_room_and_are_still_counted():
    values = LastValues()
    for _ in range(MOST_VALUES):
        values.add(9.0)
    for _ in range(MOST_VALUES - 10):
        values.add(1.0)
    assert values.percentiles() == Percentiles(1.0, 1.0, 1.0, 2 * MOST_VALUES - 10)


def test_a_rate_is_that_of_the_last_seconds():
    rate = Rate()
    assert rate.per_second(5.0) == 0.0
    for tenth in range(1000):
        rate.add(3, 100 + tenth / 10)
    assert rate.per_second(199.95) == pytest.approx(30, rel=0.1)
    assert rate.per_second(199.95 + RATE_S + 1) == 0.0


def test_a_rate_of_a_moment_does_not_grow_without_bounds():
    rate = Rate()
    rate.add(50, 7.0)
    assert rate.per_second(7.001) == 50
