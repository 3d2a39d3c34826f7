import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import RequestError
from halfbyte.runtime.sampling.whole_row import SLICE, draw_from_row, log_sum_exp
from tests.runtime.sampling.given import PROBABILITIES, row_of


@given(logits=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=50), many=st.booleans())
def test_the_sum_is_that_of_the_definition_in_slices_too(logits, many):
    row = np.array(logits * (1000 if many else 1), np.float32)
    best = float(row.max())
    expected = best + math.log(math.fsum(math.exp(float(x) - best) for x in row))
    assert log_sum_exp(row) == pytest.approx(expected, rel=1e-6, abs=1e-5)
    assert log_sum_exp(row.astype(np.float64)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_row_longer_than_a_slice_is_summed_whole():
    assert log_sum_exp(np.zeros(3 * SLICE + 5, np.float32)) == pytest.approx(math.log(3 * SLICE + 5))


def test_what_is_no_number_counts_nothing():
    row = np.array([math.nan, 0, -math.inf, 0], np.float32)
    assert log_sum_exp(row) == pytest.approx(math.log(2))


@pytest.mark.parametrize("row", [[math.nan], [-math.inf], [math.inf, 0]])
def test_a_row_without_a_best_is_an_error(row):
    with pytest.raises(RequestError, match="no finite logit"):
        log_sum_exp(np.array(row, np.float32))


@pytest.mark.parametrize("row", [[math.nan], [-math.inf], [math.inf, 0]])
def test_nothing_is_drawn_of_a_row_without_a_best(row):
    with pytest.raises(RequestError, match="no finite logit"):
        draw_from_row(np.array(row, np.float32), 0.5)


@pytest.mark.parametrize("gap", [0, 1, SLICE - 1, 2 * SLICE])
def test_drawing_inverts_the_cumulative_distribution_in_order_of_place(gap):
    row = np.full(5 + 4 * gap, -np.inf, np.float32)
    row[:: gap + 1] = row_of(PROBABILITIES)
    edges = np.cumsum(PROBABILITIES)
    for u in np.arange(0.005, 1, 0.01):
        assert draw_from_row(row, u) == np.searchsorted(edges, u, side="right") * (gap + 1)
    assert draw_from_row(row, 1 - 2**-53) == 4 * (gap + 1)
    assert draw_from_row(row, 0.0) == 0


@given(
    logits=st.lists(st.sampled_from([-math.inf, math.nan, -1e30, 0.0, 1.0, 88.0]), min_size=1, max_size=9),
    u=st.floats(0, 1, exclude_max=True),
)
def test_what_is_drawn_has_a_probability(logits, u):
    row = np.array([*logits, 0.0], np.float32)
    best = np.nanmax(row)
    assert np.exp(np.float64(row[draw_from_row(row, u)] - best)) > 0
