import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import ConfigError, FormatError, RequestError
from halfbyte.runtime.sampling import steps
from halfbyte.runtime.sampling.params import RANGES, SamplingParams, recommended
from halfbyte.runtime.sampling.sampler import SAMPLERS, Sampler
from halfbyte.runtime.sampling.steps import Candidates
from halfbyte.runtime.sampling.uniform import uniform
from halfbyte.runtime.sampling.window import PenaltyWindow
from tests.runtime.toy import ToyExecutable

SELECT = ToyExecutable().top_k
PROBABILITIES = [0.5, 0.25, 0.15, 0.06, 0.04]


@pytest.fixture(params=["few", "many"])
def candidates(request):
    logits = np.log(PROBABILITIES)
    ids = np.arange(5, dtype=np.int32)
    return Candidates(ids.tolist(), logits.tolist()) if request.param == "few" else Candidates(ids, logits)


def shares(of):
    """Probabilities of candidates."""
    cumulative = of.cumulative()
    return np.diff(cumulative, prepend=0) / cumulative[-1]


def sampler(prompt=(), capacity=100, **params):
    return Sampler(SamplingParams(**params), SELECT, prompt=np.array(prompt, np.int32), capacity=capacity)


@pytest.mark.parametrize("name", ["temperature", "top_p", "min_p", "repeat_penalty", "presence_penalty"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", True])
def test_values_that_are_no_finite_numbers(name, value):
    with pytest.raises(ConfigError, match=name) as caught:
        SamplingParams(**{name: value})
    assert caught.value.key == name


@pytest.mark.parametrize(
    "wrong",
    [{"top_p": 1.01}, {"top_p": -0.1}, {"min_p": 2}, {"repeat_penalty": 0},
     {"repeat_penalty": 1e-320}, {"frequency_penalty": -1e308}, {"presence_penalty": 1e39},
     {"top_k": 1.5}, {"seed": -1},
     {"seed": 2**64}, {"penalty_last_n": -2}, {"top_k": None}],
)  # fmt: skip
def test_values_out_of_range(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SamplingParams(**wrong)


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"top_p must be .* from 0 up to 1, not 2; min_p must"):
        SamplingParams(top_p=2, min_p=math.nan)


def test_numpy_numbers_are_numbers():
    params = SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3), seed=np.uint64(2**63))
    assert (params.temperature, params.top_k, params.seed) == (0.5, 3, 2**63)
    assert type(params.top_k) is int


def test_a_misspelt_parameter_names_the_nearest():
    with pytest.raises(ConfigError, match="'temprature'; did you mean 'temperature'"):
        SamplingParams().override({"temprature": 1})


def test_what_is_given_beats_the_file_and_the_file_beats_the_library():
    defaults = recommended({"general.sampling.temp": 0.6, "general.sampling.top_k": 20, "general.name": "x"})
    params = defaults.override({"temperature": 0.9, "top_k": None})
    assert (params.temperature, params.top_k, params.top_p) == (0.9, 20, SamplingParams().top_p)


def test_a_file_that_recommends_the_impossible_is_told():
    with pytest.raises(FormatError, match=r"general\.sampling.*temperature"):
        recommended({"general.sampling.temp": math.nan})


def test_the_order_is_llama_cpps():
    assert list(SAMPLERS) == ["penalties", "top_k", "top_p", "min_p", "temperature"]


def test_top_k_sorts_and_cuts():
    shuffled = Candidates(np.array([4, 0, 2], np.int32), np.array([1, 3, 2], np.float32))
    assert steps.top_k(shuffled, 2, SELECT) == ([0, 2], [3, 2])
    assert steps.top_k(shuffled, 0, SELECT).ids == steps.top_k(shuffled, 99, SELECT).ids == [0, 2, 4]


@given(
    logits=st.lists(st.sampled_from([-math.inf, math.nan, -2.5, -0.0, 0.0, 1, 2, math.inf]), min_size=1, max_size=30),
    k=st.integers(1, 30),
)
def test_sorting_and_selecting_agree(logits, k):
    row = np.array(logits, np.float32)
    ids, values = steps.sort_best(row, k)
    expected = sorted((-v, i) for i, v in enumerate(logits) if v > -math.inf)[:k]
    assert list(zip((-values).tolist(), ids.tolist(), strict=True)) == expected


@given(logits=st.lists(st.sampled_from([-math.inf, math.nan, -1, 0, 1]), min_size=1, max_size=9))
def test_the_one_best_is_the_first_of_the_best_numbers(logits):
    row = np.array(logits, np.float32)
    best = steps.top_k(Candidates(np.arange(len(row), dtype=np.int32), row), 1, steps.sort_best)
    numbers = [logit for logit in logits if logit > -math.inf]
    assert best.ids == ([logits.index(max(numbers))] if numbers else [])


@pytest.mark.parametrize("k", [steps.MOST_SELECTED, steps.MOST_SELECTED + 1, 0])
def test_many_candidates_are_sorted_without_the_executable(k):
    row = np.random.default_rng(0).standard_normal(999).astype(np.float32)
    asked = []
    best = steps.top_k(Candidates(np.arange(999, dtype=np.int32), row), k, lambda *a: asked.append(a) or SELECT(*a))
    assert bool(asked) == (0 < k <= steps.MOST_SELECTED)
    assert list(best.ids) == np.argsort(-row, kind="stable")[: k or None].tolist()


@pytest.mark.parametrize(
    ("p", "kept"), [(0, 1), (0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.95, 4), (0.97, 5), (1, 5)]
)
def test_top_p_keeps_the_fewest_that_reach_it(candidates, p, kept):
    assert len(steps.top_p(candidates, p).ids) == kept


@pytest.mark.parametrize(("p", "kept"), [(0, 5), (0.07, 5), (0.09, 4), (0.29, 3), (0.49, 2), (0.51, 1), (1, 1)])
def test_min_p_keeps_those_near_the_best(candidates, p, kept):
    assert len(steps.min_p(candidates, p).ids) == kept


def test_temperature_sharpens(candidates):
    sharp = shares(steps.temperature(candidates, 0.5))
    assert sharp == pytest.approx(np.square(PROBABILITIES) / np.square(PROBABILITIES).sum(), rel=1e-5)


@pytest.mark.parametrize("t", [1e-300, 1e-40, 1e300])
def test_extreme_temperatures_stay_finite(candidates, t):
    expected = [1, 0, 0, 0, 0] if t < 1 else [0.2] * 5
    assert shares(steps.temperature(candidates, t)) == pytest.approx(expected)


def test_penalties_follow_llama_cpp_and_touch_the_window_alone():
    logits = np.array([2, -2, 3, 1], np.float32)
    window = PenaltyWindow(5, [0, 1, 1])
    params = SamplingParams(repeat_penalty=2, frequency_penalty=0.25, presence_penalty=0.5)
    steps.penalties(Candidates(np.arange(4, dtype=np.int32), logits), window, params)
    assert logits.tolist() == [2 / 2 - 0.25 - 0.5, -2 * 2 - 0.5 - 0.5, 3, 1]


@pytest.mark.parametrize("name", ["repeat_penalty", "frequency_penalty", "presence_penalty"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_the_strongest_penalties_leave_finite_logits_and_say_nothing(name, end, recwarn):
    logits = np.array([30, -30, 1e4, 1], np.float32)
    window = PenaltyWindow(5, [0, 1, 1, 2])
    params = SamplingParams(**{name: getattr(RANGES[name], end)})
    steps.penalties(Candidates(np.arange(4, dtype=np.int32), logits), window, params)
    assert np.isfinite(logits).all()
    assert not recwarn.list


@given(tokens=st.lists(st.integers(0, 6), max_size=40), length=st.integers(1, 9))
def test_the_window_counts_the_last_tokens(tokens, length):
    window = PenaltyWindow(length)
    for place, token in enumerate(tokens):
        window.push(token)
        counted = dict(zip(window.ids.tolist(), window.counts.tolist(), strict=True))
        assert counted == Counter(tokens[max(place + 1 - length, 0) : place + 1])


@pytest.mark.parametrize(("last_n", "expected"), [(0, 1), (1, 0), (2, 1), (-1, 1)])
def test_a_penalty_changes_a_greedy_choice_within_its_window(last_n, expected):
    it = sampler([0, 0, 1], repeat_penalty=4, penalty_last_n=last_n)
    assert it.sample(np.array([1, 1.5, -9], np.float32), 3) == expected


def test_an_accepted_token_is_penalised_next():
    it = sampler(presence_penalty=1)
    for expected in (1, 0, 2, 1):
        token = it.sample(np.array([1, 1.5, 0.9], np.float32), 0)
        assert token == expected
        it.accept(token)


def test_temperature_zero_or_less_takes_the_best():
    logits = np.array([0, 5, 4.9], np.float32)
    assert sampler(temperature=0).sample(logits, 0) == sampler(temperature=-1, top_k=0).sample(logits, 0) == 1


def test_frequencies_are_the_models_when_every_step_is_off():
    it = sampler(temperature=1, top_k=0, top_p=1, min_p=0, seed=3)
    drawn = Counter(it.sample(np.log(PROBABILITIES).astype(np.float32), index) for index in range(4000))
    assert [drawn[i] / 4000 for i in range(5)] == pytest.approx(PROBABILITIES, abs=0.025)


def test_a_token_of_no_probability_is_never_drawn():
    logits = np.array([-np.inf, 0, -np.inf, 0], np.float32)
    it = sampler(temperature=1, top_k=0, top_p=1, min_p=0, seed=3)
    assert {it.sample(logits.copy(), index) for index in range(100)} == {1, 3}


def test_the_same_seed_draws_the_same_and_another_draws_otherwise():
    logits = np.zeros(30, np.float32)
    one, same, other = (sampler(temperature=1, seed=seed) for seed in (1, 1, 2))
    drawn = [[it.sample(logits.copy(), i) for i in range(20)] for it in (one, same, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_without_seed_two_samplers_differ():
    assert sampler(temperature=1).seed != sampler(temperature=1).seed


@pytest.mark.parametrize("row", [[math.nan] * 3, [-math.inf] * 3, [math.inf, 0, 1]])
@pytest.mark.parametrize("temperature", [0, 1])
def test_rows_without_a_finite_best_are_an_error(row, temperature):
    with pytest.raises(RequestError, match="no finite logit"):
        sampler(temperature=temperature).sample(np.array(row, np.float32), 0)


@given(seed=st.integers(0, 2**64 - 1), index=st.integers(0, 2**20))
def test_uniform_numbers_are_in_range_and_depend_on_seed_and_index_alone(seed, index):
    u = uniform(seed, index)
    assert 0 <= u < 1
    assert u == uniform(seed, index) != uniform(seed, index + 1)


def test_uniform_numbers_fill_the_range_evenly():
    drawn = np.array([uniform(0, i) for i in range(4000)] + [uniform(i, 0) for i in range(4000)])
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(800, abs=120)
