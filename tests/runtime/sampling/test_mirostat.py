import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import RequestError
from halfbyte.runtime.sampling.candidates import Candidates
from halfbyte.runtime.sampling.mirostat import Mirostat
from tests.runtime.sampling.given import EVERY_STEP_OFF, SELECT, ranked, sampler, shares

ZIPF = -1.2 * np.log(np.arange(1, 501))


def probabilities_of(logits):
    whole = np.exp(np.array(logits) - max(logits))
    return whole / whole.sum()


def slow_cut_1(probabilities, mu, m=100):
    """The paper's first algorithm: estimate the exponent, then how many keep the surprise at mu."""
    above = below = 0.0
    for i in range(1, min(m, len(probabilities))):
        t = math.log((i + 1) / i)
        above += t * math.log(probabilities[i - 1] / probabilities[i])
        below += t * t
    s = above / below
    excess = s - 1
    k = (excess * 2**mu / (1 - len(probabilities) ** -excess)) ** (1 / s)
    return min(max(int(k), 1), len(probabilities))


@given(s=st.floats(0.3, 3), size=st.integers(5, 400), mu=st.floats(0.5, 9))
def test_the_first_version_keeps_as_many_as_the_paper_says(s, size, mu):
    logits = -s * np.log(np.arange(1, size + 1)) - np.linspace(0, 0.5, size)
    it = Mirostat(1, tau=mu / 2, eta=0.1)
    kept = len(it.cut(ranked(logits), SELECT).ids)
    assert abs(kept - slow_cut_1(probabilities_of(logits), mu)) <= 1e-6 * size + 1


@given(size=st.integers(1, 60), mu=st.floats(0.1, 12))
def test_the_second_version_keeps_surprises_up_to_mu(size, mu):
    it = Mirostat(2, tau=mu / 2, eta=0.1)
    kept = it.cut(ranked(ZIPF[:size]), SELECT).ids
    surprises = -np.log2(probabilities_of(ZIPF[:size]))
    near = np.abs(surprises - mu) < 1e-6
    expected = np.flatnonzero(surprises <= mu)
    assert kept == (expected.tolist() or [0]) or near.any()


@pytest.mark.parametrize("version", [1, 2])
def test_mu_follows_the_surprise_of_the_accepted_token(version):
    it = Mirostat(version, tau=3.0, eta=0.5)
    cut = it.cut(Candidates.of_row(ZIPF.astype(np.float32)), SELECT)
    token = int(cut.ids[2])
    surprise = -math.log2(shares(cut)[token])
    it.accept(token)
    assert it.mu == pytest.approx(6.0 - 0.5 * (surprise - 3.0))


@pytest.mark.parametrize("version", [1, 2])
def test_a_token_from_elsewhere_teaches_nothing(version):
    it = Mirostat(version, tau=3.0, eta=0.5)
    it.accept(1)
    it.cut(ranked([1.0, 0.5], ids=[7, 8]), SELECT)
    it.accept(3)
    it.accept(7)
    assert it.mu == 6.0


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tau", [2.0, 4.0])
def test_the_mean_surprise_comes_to_tau(version, tau):
    it = sampler(**EVERY_STEP_OFF, mirostat=version, mirostat_tau=tau, seed=1)
    row = ZIPF.astype(np.float32)
    surprises = []
    for index in range(1500):
        token = it.sample(row.copy(), index)
        surprises.append(-math.log2(shares(it.mirostat._cut)[token]))
        it.accept(token)
    assert np.mean(surprises[200:]) == pytest.approx(tau, abs=0.25)


def test_steps_that_cut_do_not_run_beside_it_and_the_others_do():
    row = np.zeros(30, np.float32)
    params = {"temperature": 1.0, "top_k": 1, "mirostat": 2, "mirostat_tau": 50.0, "seed": 1}
    it = sampler([4], presence_penalty=500, logit_bias={5: -math.inf}, **params)
    drawn = {it.sample(row.copy(), index) for index in range(600)}
    assert drawn == set(range(30)) - {4, 5}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("logits", [[0.0], [0.0] * 50, [3e38, -3e38], [0.0, -math.inf, math.nan]])
@pytest.mark.parametrize("mu", [-1e9, 0.0, 1e9])
def test_extremes_leave_at_least_the_best(version, logits, mu):
    it = Mirostat(version, tau=1.0, eta=0.1)
    it.mu = mu
    assert it.cut(Candidates.of_row(np.array(logits, np.float32)), SELECT).ids[0] == 0


def test_a_row_of_nothing_is_an_error():
    with pytest.raises(RequestError, match="no finite logit"):
        Mirostat(2, 1.0, 0.1).cut(Candidates.of_row(np.full(3, np.nan, np.float32)), SELECT)
