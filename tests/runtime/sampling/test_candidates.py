import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import RequestError
from halfbyte.runtime.sampling.candidates import (
    MOST_SELECTED,
    SMALL,
    Candidates,
    above,
    best_of,
    draw,
    reranked,
    sort_best,
)
from tests.runtime.sampling.given import PROBABILITIES, SELECT, ranked, row_of

ODD_NUMBERS = [-math.inf, math.nan, -2.5, -0.0, 0.0, 1, 2, math.inf]


def test_the_best_are_sorted_and_cut():
    row = np.array([1, 3, 2], np.float32)
    assert best_of(Candidates.of_row(row), 2, SELECT) == ([1, 2], [3, 2], True)
    assert (
        best_of(Candidates.of_row(row), 0, SELECT).ids == best_of(Candidates.of_row(row), 99, SELECT).ids == [1, 2, 0]
    )


def test_ranked_ones_are_only_cut():
    assert best_of(ranked([3, 2, 1]), 2, SELECT).ids == [0, 1]
    assert best_of(ranked([3, 2, 1]), 0, SELECT).ids == [0, 1, 2]


@given(logits=st.lists(st.sampled_from(ODD_NUMBERS), min_size=1, max_size=30), k=st.integers(1, 30))
def test_sorting_and_selecting_agree(logits, k):
    row = np.array(logits, np.float32)
    ids, values = sort_best(row, k)
    expected = sorted((-v, i) for i, v in enumerate(logits) if v > -math.inf)[:k]
    assert list(zip((-values).tolist(), ids.tolist(), strict=True)) == expected


@pytest.mark.parametrize("select", [SELECT, sort_best])
@given(logits=st.lists(st.sampled_from(ODD_NUMBERS), min_size=1, max_size=9), k=st.integers(0, 9))
def test_the_best_are_numbers_or_an_error_says_that_none_is(select, logits, k):
    numbers = [(-v, i) for i, v in enumerate(logits) if v > -math.inf]
    row = np.array(logits, np.float32)
    if not numbers or math.inf in logits:
        with pytest.raises(RequestError, match="no finite logit"):
            best_of(Candidates.of_row(row), k, select)
    else:
        best = best_of(Candidates.of_row(row), k, select)
        assert best.ids == [i for _, i in sorted(numbers)][: k or None]


@pytest.mark.parametrize("size", [SMALL, SMALL + 1])
@pytest.mark.parametrize("k", [MOST_SELECTED, MOST_SELECTED + 1, 0])
def test_many_candidates_and_those_of_few_are_sorted_without_the_executable(k, size):
    row = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    asked = []
    best = best_of(Candidates.of_row(row), k, lambda *a: asked.append(a) or SELECT(*a))
    assert bool(asked) == (0 < k <= MOST_SELECTED and size > SMALL)
    assert list(best.ids) == np.argsort(-row, kind="stable")[: k or None].tolist()


@given(
    logits=st.lists(st.sampled_from([-math.inf, math.nan, -2, 0, 1, 2]), min_size=1, max_size=20).filter(
        lambda logits: any(v > -math.inf for v in logits)
    ),
    floor=st.sampled_from([-3, -2, -1, 0.5, 1, 2, 9]),
)
def test_those_above_a_floor_are_the_same_of_a_row_and_of_ranked_ones(logits, floor):
    row = Candidates.of_row(np.array(logits, np.float32))
    expected = [i for v, i in sorted((-v, i) for i, v in enumerate(logits) if v > -math.inf) if -v >= floor]
    best = best_of(row, 1, SELECT).ids
    assert above(row, floor, SELECT).ids == above(best_of(row, 0, SELECT), floor, SELECT).ids == (expected or best)


@given(
    logits=st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=12),
    tokens=st.sets(st.integers(0, 15), max_size=9),
)
def test_changed_logits_keep_the_candidates_ranked(logits, tokens):
    before = ranked(logits, ids=range(0, 2 * len(logits), 2))
    wanted, here = before.find(np.array(sorted(tokens), np.int32))
    after = before.with_logits(here, np.asarray(before.logits)[here] - wanted - 0.5)
    change = {sorted(tokens)[i]: -i - 0.5 for i in wanted}
    expected = {token: logit + change.get(token, 0) for token, logit in zip(before.ids, before.logits, strict=True)}
    assert after.ids == sorted(expected, key=lambda token: (-expected[token], token))
    assert dict(zip(after.ids, after.logits, strict=True)) == expected
    assert change.keys() == tokens & set(before.ids)


def test_changing_a_row_touches_the_named_logits_alone():
    row = np.array([1, math.nan, 3], np.float32)
    Candidates.of_row(row).with_logits(np.array([2]), np.array([-math.inf]))
    assert row[[0, 2]].tolist() == [1, -math.inf]
    assert math.isnan(row[1])


def test_ids_of_a_row_are_shared_and_cannot_be_written():
    ids = Candidates.of_row(np.zeros(7, np.float32)).ids
    assert ids is Candidates.of_row(np.ones(7, np.float32)).ids
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1


@given(logits=st.lists(st.sampled_from([-math.inf, math.nan, 0, 1]), min_size=1, max_size=9))
def test_ranking_any_order_drops_what_is_no_number(logits):
    ids = np.arange(len(logits))[::-1]
    numbers = sorted((-v, i) for v, i in zip(logits, ids.tolist(), strict=True) if v > -math.inf)
    if numbers:
        assert reranked(ids, np.array(logits, np.float64)).ids == [i for _, i in numbers]
    else:
        with pytest.raises(RequestError, match="no finite logit"):
            reranked(ids, np.array(logits, np.float64))


@pytest.mark.parametrize("many", [False, True])
def test_drawing_inverts_the_cumulative_distribution(many):
    candidates = ranked(np.log(PROBABILITIES), many=many)
    edges = np.cumsum(PROBABILITIES)
    drawn = [draw(candidates, u) for u in np.arange(0.005, 1, 0.01)]
    assert drawn == np.searchsorted(edges, np.arange(0.005, 1, 0.01), side="right").tolist()
    assert draw(candidates, 1 - 2**-53) == 4


def test_shares_are_those_of_the_softmax():
    row = row_of(PROBABILITIES)
    assert np.exp(best_of(Candidates.of_row(row), 0, SELECT).log_probabilities()) == pytest.approx(PROBABILITIES)
