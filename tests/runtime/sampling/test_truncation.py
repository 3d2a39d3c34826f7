"""Each step that cuts, beside what its definition says word for word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.sampling import truncation
from halfbyte.runtime.sampling.candidates import Candidates, best_of
from halfbyte.runtime.sampling.xtc import xtc
from tests.runtime.sampling.given import PROBABILITIES, SELECT, ranked, sampler, shares

LOGITS = st.lists(st.integers(-2000, 2000), min_size=1, max_size=40, unique=True).map(
    lambda wholes: [float(np.float32(whole / 97)) for whole in wholes]
)
MANY = st.booleans()


def softmax(logits):
    shares = [math.exp(logit - max(logits)) for logit in logits]
    return [share / sum(shares) for share in shares]


def best_first(logits):
    return sorted(range(len(logits)), key=lambda i: (-logits[i], i))


def slow_top_p(logits, p):
    kept, total, probabilities = [], 0.0, softmax(logits)
    for i in best_first(logits):
        kept.append(i)
        total += probabilities[i]
        if total >= p:
            break
    return kept


def slow_min_p(logits, p):
    return [i for i in best_first(logits) if math.exp(logits[i] - max(logits)) >= p]


def slow_top_n_sigma(logits, n):
    mean = sum(logits) / len(logits)
    deviation = math.sqrt(sum((logit - mean) ** 2 for logit in logits) / len(logits))
    return [i for i in best_first(logits) if logits[i] >= max(logits) - n * deviation]


def slow_typical_p(logits, p):
    probabilities = softmax(logits)
    entropy = -sum(share * math.log(share) for share in probabilities)
    kept, total = [], 0.0
    for i in sorted(range(len(logits)), key=lambda i: abs(-math.log(probabilities[i]) - entropy)):
        kept.append(i)
        total += probabilities[i]
        if total > p:
            break
    return sorted(kept, key=lambda i: (-logits[i], i))


def slow_xtc(logits, threshold):
    order, probabilities = best_first(logits), softmax(logits)
    likely = [i for i in order if probabilities[i] >= threshold]
    return order[max(len(likely) - 1, 0) :]


STEPS = {
    "top_p": (lambda candidates, p: truncation.top_p(candidates, p, SELECT), slow_top_p),
    "min_p": (lambda candidates, p: truncation.min_p(candidates, p, SELECT), slow_min_p),
    "top_n_sigma": (lambda candidates, p: truncation.top_n_sigma(candidates, 3 * p, SELECT),
                    lambda logits, p: slow_top_n_sigma(logits, 3 * p)),
    "typical_p": (lambda candidates, p: truncation.typical_p(candidates, p), slow_typical_p),
    "xtc": (lambda candidates, p: xtc(candidates, p / 2), lambda logits, p: slow_xtc(logits, p / 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@given(logits=LOGITS, p=st.floats(0.015625, 0.984375), many=MANY)
def test_a_step_keeps_what_its_definition_says(name, logits, p, many):
    step, slow = STEPS[name]
    before = ranked(logits, many=many)
    after = step(before, p)
    kept, expected = np.asarray(after.ids).tolist(), slow(logits, p)
    if kept != expected:
        # Rounded sums may fall on either side of a border, and two may be equally typical.
        assert len(set(kept) ^ set(expected)) <= (2 if name == "typical_p" else 1)
    logit_of = dict(zip(before.ids, before.logits, strict=True))
    assert np.asarray(after.logits).tolist() == [logit_of[token] for token in kept]
    assert len(kept) >= 1


@pytest.mark.parametrize("name", ["top_p", "min_p", "top_n_sigma"])
@given(logits=LOGITS, p=st.floats(0, 1), many=MANY)
def test_the_best_survives(name, logits, p, many):
    before = ranked(logits, many=many)
    assert STEPS[name][0](before, p).ids[0] == before.ids[0]


@pytest.mark.parametrize("name", ["top_p", "min_p", "top_n_sigma"])
@given(logits=LOGITS, p=st.floats(0.015625, 0.984375))
def test_a_whole_row_is_cut_as_its_ranked_candidates_are(name, logits, p):
    row = np.array(logits, np.float32)
    of_row = STEPS[name][0](Candidates.of_row(row), p)
    of_ranked = STEPS[name][0](best_of(Candidates.of_row(row), 0, SELECT), p)
    assert len(set(of_row.ids) ^ set(of_ranked.ids)) <= 1
    assert of_row.ids[0] == of_ranked.ids[0]


@pytest.mark.parametrize(
    ("p", "kept"), [(0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.95, 4), (0.97, 5), (1, 5)]
)
def test_top_p_keeps_the_fewest_that_reach_it(p, kept):
    assert len(truncation.top_p(ranked(np.log(PROBABILITIES)), p, SELECT).ids) == kept


@pytest.mark.parametrize(("p", "kept"), [(0, 5), (0.07, 5), (0.09, 4), (0.29, 3), (0.49, 2), (0.51, 1), (1, 1)])
def test_min_p_keeps_those_near_the_best(p, kept):
    assert len(truncation.min_p(ranked(np.log(PROBABILITIES)), p, SELECT).ids) == kept


@pytest.mark.parametrize("p", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("spread", [0.01, 4.0])
def test_top_p_of_a_row_finds_the_same_without_sorting_it_whole(spread, p):
    row = (np.random.default_rng(0).standard_normal(2000) * spread).astype(np.float32)
    kept = truncation.top_p(Candidates.of_row(row), p, SELECT)
    assert np.asarray(kept.ids).tolist() == slow_top_p(row.tolist(), p)


def test_top_n_sigma_looks_at_numbers_alone():
    row = np.array([0, 1, 2, 10, -math.inf, math.nan], np.float32)
    assert truncation.top_n_sigma(Candidates.of_row(row), 2.1, SELECT).ids == [3, 2]
    assert truncation.top_n_sigma(Candidates.of_row(row), 1, SELECT).ids == [3]


def test_typical_p_may_leave_out_the_best():
    # A sure token among many unlikely ones surprises less than is usual.
    logits = np.log([0.4] + [0.6 / 60] * 60)
    assert 0 not in truncation.typical_p(ranked(logits), 0.2).ids


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [(0.0, [4]), (0.05, [3, 4]), (0.1, [2, 3, 4]), (0.3, [0, 1, 2, 3, 4]), (0.5, [0, 1, 2, 3, 4])],
)
def test_xtc_leaves_the_least_of_the_likely(threshold, kept):
    assert xtc(ranked(np.log(PROBABILITIES)), threshold).ids == kept


def test_xtc_acts_with_its_probability():
    row = np.log(PROBABILITIES).astype(np.float32)
    it = sampler(temperature=1e-3, xtc_probability=0.3, seed=1)
    drawn = [it.sample(row.copy(), index) for index in range(2000)]
    assert set(drawn) == {0, 2}
    assert drawn.count(2) / 2000 == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("params", [{"xtc_probability": 0.0}, {"xtc_probability": 1.0, "xtc_threshold": 0.51}])
def test_xtc_is_off(params):
    row = np.log([0.52, 0.48]).astype(np.float32)
    it = sampler(temperature=1e-3, seed=1, **params)
    assert {it.sample(row.copy(), index) for index in range(50)} == {0}


@given(logits=LOGITS, p=st.floats(0, 1))
def test_cutting_keeps_the_ratio_of_probabilities(logits, p):
    before, after = ranked(logits), truncation.top_p(ranked(logits), p, SELECT)
    whole, kept = shares(before), shares(after)
    total = sum(whole[token] for token in kept)
    assert kept == pytest.approx({token: whole[token] / total for token in kept})
