from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.sampling.candidates import Candidates, best_of
from halfbyte.runtime.sampling.logit_bias import LogitBias
from halfbyte.runtime.sampling.parameters import PARAMETERS
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.runtime.sampling.penalties import penalties
from halfbyte.runtime.sampling.window import PenaltyWindow
from tests.runtime.sampling.given import SELECT


def test_penalties_follow_llama_cpp_and_touch_the_window_alone():
    logits = np.array([2, -2, 3, 1], np.float32)
    window = PenaltyWindow(5, [0, 1, 1])
    params = SamplingParams(repeat_penalty=2, frequency_penalty=0.25, presence_penalty=0.5)
    penalties(Candidates.of_row(logits), window, params)
    assert logits.tolist() == [2 / 2 - 0.25 - 0.5, -2 * 2 - 0.5 - 0.5, 3, 1]


@given(
    logits=st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), min_size=3, max_size=12),
    tokens=st.lists(st.integers(0, 2), max_size=9),
)
def test_a_row_and_its_ranked_candidates_are_penalised_alike(logits, tokens):
    window = PenaltyWindow(9, tokens)
    params = SamplingParams(repeat_penalty=1.5, frequency_penalty=0.25, presence_penalty=0.5)
    row = np.array(logits, np.float32)
    behind = penalties(best_of(Candidates.of_row(row), 0, SELECT), window, params)
    before = best_of(penalties(Candidates.of_row(row.copy()), window, params), 0, SELECT)
    assert behind.ids == before.ids
    assert behind.logits == pytest.approx(before.logits)


@pytest.mark.parametrize("name", ["repeat_penalty", "frequency_penalty", "presence_penalty"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_the_strongest_penalties_leave_finite_logits_and_say_nothing(name, end, recwarn):
    logits = np.array([30, -30, 1e4, 1], np.float32)
    window = PenaltyWindow(5, [0, 1, 1, 2])
    penalties(Candidates.of_row(logits), window, SamplingParams(**{name: getattr(PARAMETERS[name], end)}))
    assert np.isfinite(logits).all()
    assert not recwarn.list


@given(tokens=st.lists(st.integers(0, 6), max_size=40), length=st.integers(1, 9), fork_at=st.integers(0, 40))
def test_the_window_counts_the_last_tokens_and_so_does_its_fork(tokens, length, fork_at):
    window = PenaltyWindow(length)
    for place, token in enumerate(tokens):
        if place == fork_at:
            left, window = window, window.fork()
            left.push(5)
        window.push(token)
        counted = dict(zip(window.ids.tolist(), window.counts.tolist(), strict=True))
        assert counted == Counter(tokens[max(place + 1 - length, 0) : place + 1])


def test_biases_are_added_to_a_row_and_to_ranked_candidates():
    row = np.array([1, 2, 3, 4], np.float32)
    bias = LogitBias({3: -2.0, 0: 9.0})
    assert bias.add(best_of(Candidates.of_row(row), 3, SELECT)) == ([2, 1, 3], [3, 2, 2], True)
    bias.add(Candidates.of_row(row))
    assert row.tolist() == [10, 2, 3, 2]
