import dataclasses
import math
import pickle
import re

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.runtime.options import Options
from halfbyte.runtime.sampling.chain import SAMPLERS
from halfbyte.runtime.sampling.parameters import PARAMETERS
from halfbyte.runtime.sampling.params import METADATA_KEYS, ORDER, SamplingParams, recommended
from tests.source_tree import ROOT

NUMBERS = [name for name, allowed in PARAMETERS.items() if not allowed.integer]
FIELDS = {field.name: field for field in dataclasses.fields(SamplingParams)}


def test_every_number_has_a_range_and_its_default_is_inside():
    others = {"logit_bias", "samplers", "dry_sequence_breakers"}
    assert PARAMETERS.keys() | others == FIELDS.keys()
    assert all(allowed.holds(FIELDS[name].default) for name, allowed in PARAMETERS.items())


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", True, None])
def test_values_that_are_no_finite_numbers(name, value):
    with pytest.raises(ConfigError, match=name) as caught:
        SamplingParams(**{name: value})
    assert caught.value.key == name


@pytest.mark.parametrize(
    "wrong",
    [{"top_p": 1.01}, {"top_p": -0.1}, {"min_p": 2}, {"repeat_penalty": 0}, {"repeat_penalty": 1e-320},
     {"frequency_penalty": -1e308}, {"presence_penalty": 1e39}, {"top_k": 1.5}, {"top_k": None}, {"seed": -1},
     {"seed": 2**64}, {"penalty_last_n": -2}, {"xtc_probability": 1.5}, {"dry_base": 0.5}, {"dry_allowed_length": 0},
     {"mirostat": 3}, {"mirostat_tau": -1}, {"logprobs": 21}, {"logprobs": -1}, {"dynatemp_range": -0.1}],
)  # fmt: skip
def test_values_out_of_range(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SamplingParams(**wrong)


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError, match=r"top_p must be .* from 0 up to 1, not 2; min_p must .*; samplers has no"):
        SamplingParams(top_p=2, min_p=math.nan, samplers=["best"])


@pytest.mark.parametrize(
    ("bias", "problem"),
    [([5], "must map"), ({"5": 1}, "'5' is no token"), ({True: 1}, "no token id"), ({-1: 1}, "no token id"),
     ({5: math.nan}, "for token 5"), ({5: math.inf}, "for token 5"), ({5: 1e300}, "for token 5"),
     ({5: "x"}, "for token 5")],
)  # fmt: skip
def test_biases_that_are_none(bias, problem):
    with pytest.raises(ConfigError, match=f"logit_bias.*{problem}"):
        SamplingParams(logit_bias=bias)


@pytest.mark.parametrize(
    ("samplers", "problem"),
    [("top_k", "must be a list"), (5, "must be a list"), (["topk"], "'topk'; did you mean 'top_k'"),
     (["zzz"], "'zzz'; known: penalties, dry"), ([None], "no step None"), (["dry", "dry"], "'dry' twice")],
)  # fmt: skip
def test_orders_that_are_none(samplers, problem):
    with pytest.raises(ConfigError, match=f"samplers .*{problem}"):
        SamplingParams(samplers=samplers)


@pytest.mark.parametrize("texts", ["\n", [""], [5], None, ["\ud800"], ["x"] * 65])
def test_breakers_that_are_none(texts):
    with pytest.raises(ConfigError, match="dry_sequence_breakers must be a list of at most 64 strings"):
        SamplingParams(dry_sequence_breakers=texts)


def test_numpy_numbers_are_numbers():
    params = SamplingParams(
        temperature=np.float32(0.5), top_k=np.int64(3), seed=np.uint64(2**63), logit_bias={np.int32(7): np.float32(2)}
    )
    assert (params.temperature, params.top_k, params.seed, params.logit_bias) == (0.5, 3, 2**63, {7: 2.0})
    assert type(params.top_k) is type(next(iter(params.logit_bias))) is int


def test_what_is_given_is_kept_as_it_was():
    bias = {1: 2.0}
    params = SamplingParams(logit_bias=bias, samplers=["top_k"], dry_sequence_breakers=["."])
    bias[1] = 9.0
    assert (params.logit_bias, params.samplers, params.dry_sequence_breakers) == ({1: 2.0}, ("top_k",), (".",))


def test_parameters_can_be_hashed_pickled_and_listed():
    params = SamplingParams(logit_bias={1: -math.inf}, samplers=("top_k", len))
    assert hash(params) == hash(pickle.loads(pickle.dumps(params)))
    assert SamplingParams(**dataclasses.asdict(params)) == params


@pytest.mark.parametrize(("given", "kept"), [(True, 0), (False, None), (0, 0), (20, 20), (None, None)])
def test_log_probabilities_are_asked_for_by_a_number_or_a_yes(given, kept):
    assert SamplingParams(logprobs=given).logprobs is kept or SamplingParams(logprobs=given).logprobs == kept


def test_a_misspelt_parameter_names_the_nearest():
    with pytest.raises(ConfigError, match="'temprature'; did you mean 'temperature'"):
        SamplingParams().override({"temprature": 1})


def test_what_is_given_beats_the_file_and_the_file_beats_the_library():
    defaults = recommended({"general.sampling.temp": 0.6, "general.sampling.top_k": 20, "general.name": "x"})
    params = defaults.override({"temperature": 0.9, "top_k": None})
    assert (params.temperature, params.top_k, params.top_p) == (0.9, 20, SamplingParams().top_p)


def test_every_key_of_a_file_sets_its_parameter():
    for key, name in METADATA_KEYS.items():
        assert getattr(recommended({key: 1}), name) == 1


def test_a_file_that_recommends_the_impossible_is_told():
    with pytest.raises(FormatError, match=r"general\.sampling.*temperature"):
        recommended({"general.sampling.temp": math.nan})


def test_the_order_is_llama_cpps_and_names_every_step():
    order = ["penalties", "dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc", "temperature"]
    assert list(SamplingParams().samplers) == list(ORDER) == list(SAMPLERS) == order


@pytest.mark.parametrize(
    ("given", "greedy"),
    [({}, True), ({"temperature": -1}, True), ({"temperature": 0.1}, False), ({"dynatemp_range": 0.5}, False),
     ({"mirostat": 2}, True), ({"temperature": -1, "dynatemp_range": 0.5}, True)],
)  # fmt: skip
def test_the_best_token_is_taken_where_no_temperature_is_above_zero(given, greedy):
    assert SamplingParams(**given).greedy is greedy


def test_the_page_on_sampling_tells_of_every_parameter_and_step():
    page = (ROOT / "docs/sampling.md").read_text(encoding="utf-8")
    assert FIELDS.keys() - set(re.findall(r"`(\w+)", page)) == set()
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == ORDER


def test_a_caller_can_say_every_parameter():
    assert FIELDS.keys() <= Options.__annotations__.keys()
