import math

import numpy as np
import pytest

from halfbyte.runtime.sampling.logprobs import read, score_rows
from tests.runtime.sampling.given import PROBABILITIES, SELECT, row_of, sampler


@pytest.mark.parametrize("k", [0, 1, 3, 9])
def test_a_token_and_the_best_with_their_log_probabilities(k):
    row = row_of(PROBABILITIES)
    found = read(row, 3, k, SELECT)
    assert (found.token, found.logprob) == (3, pytest.approx(math.log(0.06), abs=1e-6))
    assert [token for token, _ in found.top] == [0, 1, 2, 3, 4][:k]
    assert [logprob for _, logprob in found.top] == pytest.approx(np.log(PROBABILITIES)[:k], abs=1e-6)
    assert (row == row_of(PROBABILITIES)).all()


def test_rows_are_scored_against_the_tokens_that_follow():
    rows = np.stack([row_of(PROBABILITIES), row_of(PROBABILITIES[::-1])])
    found = score_rows(rows, np.array([0, 0]), 1, SELECT)
    assert found == [read(rows[0], 0, 1, SELECT), read(rows[1], 0, 1, SELECT)]
    assert [math.exp(each.logprob) for each in found] == pytest.approx([0.5, 0.04], rel=1e-5)
    assert score_rows(rows[:0], np.array([], np.int32), 1, SELECT) == []


@pytest.mark.parametrize("temperature", [0, 2])
def test_a_sampler_reports_the_models_probabilities_whatever_the_steps_do(temperature):
    it = sampler(
        [0], temperature=temperature, presence_penalty=9, logit_bias={1: -math.inf}, top_k=1, logprobs=2, seed=1
    )
    assert it.last_logprobs is None
    row = row_of(PROBABILITIES)
    assert it.sample(row, 1) == 2
    assert (row == row_of(PROBABILITIES)).all()
    assert it.last_logprobs == read(row, 2, 2, SELECT)


def test_without_being_asked_a_sampler_reports_nothing():
    it = sampler()
    it.sample(row_of(PROBABILITIES), 0)
    assert it.last_logprobs is None
