import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import RequestError
from halfbyte.runtime.sampling.candidates import NO_BEST
from halfbyte.runtime.sampling.uniform import DRAW, EXCLUDE, uniform
from tests.runtime.sampling.given import EVERY_STEP_OFF, PROBABILITIES, SELECT, row_of, sampler


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


def test_a_bias_bans_and_forces():
    row = np.array([0, 5, 4.9, 1], np.float32)
    assert sampler(logit_bias={1: -math.inf}).sample(row.copy(), 0) == 2
    assert sampler(logit_bias={1: -math.inf, 3: 4.5}).sample(row.copy(), 0) == 3
    forced = sampler(**EVERY_STEP_OFF, logit_bias={0: 1e6})
    assert {forced.sample(row.copy(), index) for index in range(50)} == {0}


def test_a_row_of_banned_tokens_is_an_error():
    with pytest.raises(RequestError, match="all tokens are banned"):
        sampler(logit_bias={0: -math.inf, 1: -math.inf}).sample(np.zeros(2, np.float32), 0)


def test_steps_run_in_the_order_given():
    row = row_of([0.4, 0.3, 0.2, 0.1])
    cut_first = sampler(temperature=100, top_k=0, min_p=0.6, top_p=1, samplers=["min_p", "temperature"], seed=1)
    cut_last = sampler(temperature=100, top_k=0, min_p=0.6, top_p=1, samplers=["temperature", "min_p"], seed=1)
    assert {cut_first.sample(row.copy(), index) for index in range(200)} == {0, 1}
    assert {cut_last.sample(row.copy(), index) for index in range(200)} == {0, 1, 2, 3}


def test_a_step_left_out_does_not_run():
    row = row_of(PROBABILITIES)
    it = sampler([0], temperature=1, top_k=1, presence_penalty=50, samplers=["temperature"], seed=1)
    assert {it.sample(row.copy(), index) for index in range(300)} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("samplers", [["top_k", "penalties"], ["penalties", "top_k"]])
def test_penalties_work_before_and_behind_a_cut(samplers):
    row = np.array([3, 2.5, 2, 1.9], np.float32)
    it = sampler([0], temperature=0.001, top_k=2, presence_penalty=2, samplers=[*samplers, "temperature"], seed=1)
    assert it.sample(row, 0) == 1


CHAINS = {
    "plain": EVERY_STEP_OFF,
    "temperature": {**EVERY_STEP_OFF, "temperature": 2.0},
    "top_p": {**EVERY_STEP_OFF, "top_p": 0.8},
    "defaults": {"temperature": 0.7},
    "temperature first": {**EVERY_STEP_OFF, "temperature": 0.5, "samplers": ("temperature", "top_p"), "top_p": 0.95},
}
EXPECTED = {
    "plain": PROBABILITIES,
    "temperature": np.sqrt(PROBABILITIES) / np.sqrt(PROBABILITIES).sum(),
    "top_p": np.array([0.5, 0.25, 0.15, 0, 0]) / 0.9,
    "defaults": np.array([*np.power(PROBABILITIES[:4], 1 / 0.7), 0]) / np.power(PROBABILITIES[:4], 1 / 0.7).sum(),
    "temperature first": np.array([0.25, 0.0625, 0.0225, 0, 0]) / 0.335,
}


@pytest.mark.parametrize("name", CHAINS)
def test_frequencies_are_the_distributions(name):
    draws, expected = 20_000, np.asarray(EXPECTED[name])
    it = sampler(seed=3, **CHAINS[name])
    row = row_of(PROBABILITIES)
    drawn = Counter(it.sample(row.copy(), index) for index in range(draws))
    possible = np.flatnonzero(expected)
    assert set(drawn) == set(possible.tolist())
    counts = np.array([drawn[token] for token in possible])
    chi_squared = ((counts - draws * expected[possible]) ** 2 / (draws * expected[possible])).sum()
    assert chi_squared < 18.5  # one seed in a thousand with four degrees of freedom; this one is fixed


def test_a_token_of_no_probability_is_never_drawn():
    it = sampler(**EVERY_STEP_OFF, seed=3)
    assert {it.sample(row_of([0, 0.5, 0, 0.5]), index) for index in range(100)} == {1, 3}


def test_the_same_seed_draws_the_same_and_another_draws_otherwise():
    logits = np.zeros(30, np.float32)
    one, same, other = (sampler(temperature=1, seed=seed) for seed in (1, 1, 2))
    drawn = [[it.sample(logits.copy(), i) for i in range(20)] for it in (one, same, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_without_seed_two_samplers_differ():
    assert sampler(temperature=1).seed != sampler(temperature=1).seed


EVERY_STATE = {
    "temperature": 1.5, "top_k": 20, "presence_penalty": 0.5, "dry_multiplier": 2.0, "dry_allowed_length": 1,
    "xtc_probability": 0.5, "xtc_threshold": 0.02, "seed": 5,
}  # fmt: skip
STATEFUL = [EVERY_STATE, {**EVERY_STATE, "mirostat": 1}, {**EVERY_STATE, "mirostat": 2, "mirostat_eta": 0.5}]


def advance(it, start, count):
    """Tokens drawn from rows that depend on their index alone."""
    tokens = []
    for index in range(start, start + count):
        row = np.random.default_rng(index).standard_normal(40).astype(np.float32)
        tokens.append(it.sample(row, index))
        it.accept(tokens[-1])
    return tokens


@pytest.mark.parametrize("params", STATEFUL)
def test_a_fork_goes_on_as_the_original_would_and_neither_disturbs_the_other(params):
    whole = advance(sampler([1, 2, 1], **params), 3, 30)
    it = sampler([1, 2, 1], **params)
    begun = advance(it, 3, 10)
    twin, other = it.fork(), it.fork(seed=99)
    assert advance(other, 13, 20) != whole[10:]
    assert advance(twin, 13, 20) == whole[10:]
    assert begun + advance(it, 13, 20) == whole


@pytest.mark.parametrize(
    ("params", "count"),
    [({}, 1), ({"temperature": 1}, 40), ({"temperature": 1, "top_k": 3, "typical_p": 0.5}, 3),
     ({"temperature": 1, "top_k": 256}, 256), ({"temperature": 1, "top_k": 257}, 0),
     ({"temperature": 1, "top_k": 0}, 0),
     ({"temperature": 1, "mirostat": 2}, 0), ({"logit_bias": {1: 2.0}}, 2), ({"presence_penalty": 1.0}, 65),
     ({"logit_bias": {2: -math.inf}, "repeat_penalty": 1.5, "temperature": 1, "logprobs": 2}, 105),
     ({"logit_bias": {7: 9.0, 2: -math.inf, 3: 0.25}, "temperature": 1, "top_k": 5}, 8),
     ({"repeat_penalty": 1.5, "temperature": 1, "penalty_last_n": 300}, 140),
     ({"presence_penalty": 1.0, "penalty_last_n": -1}, 101), ({"presence_penalty": 1.0, "dry_multiplier": 1.0}, 0),
     ({"logit_bias": dict.fromkeys(range(255), 1.0)}, 256), ({"logit_bias": dict.fromkeys(range(256), 1.0)}, 0),
     ({"temperature": 1, "samplers": ["top_p", "top_k"]}, 0)],
)  # fmt: skip
def test_a_sampler_says_how_many_best_it_looks_at_and_takes_them_from_others(params, count):
    it = sampler([1], **params, seed=4)
    assert it.selects == count
    for index in range(40 if count else 0):
        row = np.random.default_rng(index).standard_normal(300).astype(np.float32)
        row = np.round(row * 2) / 2 if index % 2 else row  # many equals
        given, found = row.copy(), it.sample(row.copy(), index)
        logprobs = it.last_logprobs
        assert it.sample(given, index, SELECT(row, count)) == found
        assert it.last_logprobs == logprobs
        assert np.array_equal(given, row), "a row whose best are known stays as it is"
        it.accept(found)


@pytest.mark.parametrize("params", STATEFUL)
def test_neighbours_do_not_change_what_is_drawn(params):
    alone = [advance(sampler([seed], **{**params, "seed": seed}), 1, 12) for seed in (1, 2)]
    pair = [sampler([seed], **{**params, "seed": seed}) for seed in (1, 2)]
    together = [[], []]
    for index in range(1, 13):
        for it, tokens in zip(pair, together, strict=True):
            tokens += advance(it, index, 1)
    assert together == alone


@pytest.mark.parametrize("params", STATEFUL)
def test_sampling_changes_nothing_until_the_token_is_accepted(params):
    it = sampler([1, 2, 1], **params)
    row = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    assert len({it.sample(row.copy(), 3) for _ in range(5)}) == 1
    assert advance(it, 3, 20) == advance(sampler([1, 2, 1], **params), 3, 20)


@pytest.mark.parametrize("row", [[math.nan] * 3, [-math.inf] * 3, [math.inf, 0, 1]])
@pytest.mark.parametrize(
    "params",
    [{}, {"temperature": 1}, {**EVERY_STEP_OFF, "mirostat": 1}, {**EVERY_STEP_OFF, "mirostat": 2},
     {"temperature": 1, "top_n_sigma": 1.0}, {"logprobs": 2}],
)  # fmt: skip
def test_rows_without_a_finite_best_are_an_error(row, params):
    with pytest.raises(RequestError, match="no finite logit"):
        sampler(**params).sample(np.array(row, np.float32), 0)


STEPS_ON = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.0, 1e-300, 1e-30, 0.8, 1e300]),
        "dynatemp_range": st.sampled_from([0.0, 0.5, 1e300]),
        "dynatemp_exponent": st.sampled_from([0.0, 1.0, 7.5]),
        "top_k": st.sampled_from([0, 1, 3, 300]),
        "top_p": st.sampled_from([0.0, 0.5, 1.0]),
        "min_p": st.sampled_from([0.0, 1e-300, 0.3, 1.0]),
        "typical_p": st.sampled_from([0.0, 0.5, 1.0]),
        "top_n_sigma": st.sampled_from([-1.0, 1e-300, 1.0, 1e6]),
        "xtc_probability": st.sampled_from([0.0, 1.0]),
        "xtc_threshold": st.sampled_from([0.0, 0.1, 0.5]),
        "repeat_penalty": st.sampled_from([1e-6, 1.0, 1e6]),
        "frequency_penalty": st.sampled_from([-1e6, 0.0, 1e6]),
        "dry_multiplier": st.sampled_from([0.0, 1e6]),
        "dry_base": st.sampled_from([1.0, 1.75, 1e6]),
        "dry_allowed_length": st.sampled_from([1, 2]),
        "mirostat": st.sampled_from([0, 0, 1, 2]),
        "mirostat_tau": st.sampled_from([0.0, 5.0, 1e6]),
        "logit_bias": st.sampled_from([{}, {0: -math.inf}, {1: 1e6, 2: -1e6}]),
        "samplers": st.permutations(["penalties", "dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc"]),
        "logprobs": st.sampled_from([None, 0, 3]),
    }
)
ODD_LOGITS = np.array([-math.inf, math.nan, -1e30, -1.0, 0.0, 1e-40, 1.0, 3e38], np.float32)


def odd_rows(size):
    return st.lists(st.lists(st.sampled_from(range(8)), min_size=1, max_size=size), min_size=1, max_size=4).map(
        lambda rows: [np.resize(ODD_LOGITS[row], size) for row in rows]
    )


def attempt(it, row, index):
    """A token, or None where every token is banned or damaged."""
    try:
        return it.sample(row, index)
    except RequestError as error:
        if NO_BEST not in str(error):
            raise
        return None


@given(params=STEPS_ON, rows=st.sampled_from([4, 12, 300]).flatmap(odd_rows), first=st.integers(0, 8))
def test_nothing_crashes_or_warns_whatever_the_parameters_and_the_row(params, rows, first):
    samplers = [*params["samplers"]]
    samplers.insert(first, "temperature")
    it = sampler([0, 1, 0, 1, 0], **{**params, "samplers": samplers}, seed=1)
    for index, row in enumerate(rows):
        before = row.copy()
        token = attempt(it, row, index)
        if token is None:
            assert not np.isfinite(before[1:]).any() or np.nanmax(before) > 1e30
        else:
            assert before[token] > -math.inf
            it.accept(token)


@given(seed=st.integers(0, 2**64 - 1), index=st.integers(0, 2**20), purpose=st.sampled_from([DRAW, EXCLUDE]))
def test_uniform_numbers_are_in_range_and_depend_on_seed_index_and_purpose_alone(seed, index, purpose):
    u = uniform(seed, index, purpose)
    assert 0 <= u < 1
    assert u == uniform(seed, index, purpose) != uniform(seed, index + 1, purpose)
    assert uniform(seed, index, DRAW) != uniform(seed, index, EXCLUDE)


@pytest.mark.parametrize("purpose", [DRAW, EXCLUDE])
def test_uniform_numbers_fill_the_range_evenly(purpose):
    drawn = np.array([uniform(0, i, purpose) for i in range(4000)] + [uniform(i, 0, purpose) for i in range(4000)])
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(800, abs=120)


def test_numbers_for_different_purposes_are_independent():
    pairs = np.array([[uniform(7, i, DRAW), uniform(7, i, EXCLUDE)] for i in range(4000)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.05
