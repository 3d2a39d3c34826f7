import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.sampling.candidates import Candidates, best_of
from halfbyte.runtime.sampling.temperature import dynamic_temperature, temperature
from tests.runtime.sampling.given import PROBABILITIES, SELECT, ranked, row_of, sampler, shares


@pytest.fixture(params=["few", "many", "row"])
def candidates(request):
    if request.param == "row":
        return Candidates.of_row(row_of(PROBABILITIES))
    return ranked(np.log(PROBABILITIES), many=request.param == "many")


def share_list(candidates):
    return list(shares(best_of(candidates, 0, SELECT)).values())


def test_temperature_sharpens(candidates):
    sharp = share_list(temperature(candidates, 0.5, SELECT))
    assert sharp == pytest.approx(np.square(PROBABILITIES) / np.square(PROBABILITIES).sum(), rel=1e-5)


@pytest.mark.parametrize("t", [1e-300, 1e-40, 1e300])
def test_extreme_temperatures_stay_finite(candidates, t):
    expected = [0.2] * 5 if t > 1 else [1, 0, 0, 0, 0]
    found = share_list(temperature(candidates, t, SELECT))
    assert found == pytest.approx(expected[: len(found)])
    assert len(found) == 5 or t < 1  # what leaves float32 is out


@given(
    logits=st.lists(st.floats(-10, 10), min_size=2, max_size=20),
    low=st.floats(0, 1),
    span=st.floats(0, 2),
    exponent=st.floats(0, 4),
)
def test_dynamic_temperature_follows_the_entropy(logits, low, span, exponent):
    shares = [math.exp(logit) for logit in logits]
    probabilities = [share / sum(shares) for share in shares]
    entropy = -sum(p * math.log(p) for p in probabilities) / math.log(len(logits))
    expected = low + span * min(entropy, 1.0) ** exponent
    assert dynamic_temperature(ranked(logits), low, low + span, exponent) == pytest.approx(expected, abs=1e-6)


def test_dynamic_temperature_at_its_ends():
    assert dynamic_temperature(ranked([1.0] * 7), 0.5, 1.5, 1.0) == pytest.approx(1.5)
    assert dynamic_temperature(ranked([900.0, 0.0, 0.0]), 0.5, 1.5, 1.0) == pytest.approx(0.5)


def test_a_dynamic_range_draws_freely_only_where_the_model_hesitates():
    it = sampler(temperature=0.5, dynatemp_range=0.5, top_k=0, top_p=1, min_p=0, seed=1)
    sure, unsure = np.array([9, 0, 0, 0], np.float32), np.array([0.1, 0, 0, 0], np.float32)
    assert {it.sample(sure.copy(), index) for index in range(300)} == {0}
    assert {it.sample(unsure.copy(), index) for index in range(300)} == {0, 1, 2, 3}
