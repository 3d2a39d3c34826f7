"""Sampling among neighbours: what one sequence draws is its own business, and so is what it cannot draw."""

import numpy as np
import pytest

from halfbyte.errors import RequestError
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.sampling.given import sampler
from tests.runtime.toy import GREEDY, ToyExecutable, ask, ids_of, tokens_of, toy_answer, toy_engine, toy_logits

EVERYTHING = {
    "temperature": 1.2, "dynatemp_range": 0.3, "repeat_penalty": 1.2, "dry_multiplier": 1.0, "dry_allowed_length": 1,
    "xtc_probability": 0.4, "xtc_threshold": 0.03, "logit_bias": {3: -float("inf"), 9: 1.0},
}  # fmt: skip
PARAMS = [
    SamplingParams(**EVERYTHING, seed=7),
    SamplingParams(**EVERYTHING, seed=8, mirostat=2, mirostat_eta=0.4),
    SamplingParams(**EVERYTHING, seed=9, mirostat=1, logprobs=3),
    SamplingParams(temperature=0.9, seed=10),
    GREEDY,
]


def alone(prompt, params, count):
    """The answer by the sampler itself, without an engine."""
    names = {name: getattr(params, name) for name in SamplingParams.__dataclass_fields__}
    it = sampler(prompt, len(prompt) + count, **names)
    ids = list(prompt)
    for _ in range(count):
        ids.append(it.sample(toy_logits(np.array(ids)), len(ids)))
        it.accept(ids[-1])
    return ids[len(prompt) :]


@pytest.mark.parametrize("n_pages", [40, 9])
def test_answers_are_those_of_the_sampler_alone_whatever_the_neighbours_and_the_pages(n_pages):
    engine = toy_engine(ToyExecutable(n_pages=n_pages))
    prompts = [[1, 2, 3], [4, 5], [1, 2, 3], [6], [7, 8, 9, 1]]
    requests = [
        engine.submit(ids_of(*prompt), ask(14, params=params)) for prompt, params in zip(prompts, PARAMS, strict=True)
    ]
    answers = [tokens_of(request) for request in requests]
    engine.close()
    assert answers == [alone(prompt, params, 14) for prompt, params in zip(prompts, PARAMS, strict=True)]


def test_a_function_that_fails_ends_its_request_alone():
    def picky(ids, logits):
        raise ArithmeticError("no")

    engine = toy_engine()
    bad = engine.submit(ids_of(1), ask(5, params=SamplingParams(samplers=[picky])))
    good = engine.submit(ids_of(2), ask(5))
    with pytest.raises(RequestError, match="sampler step 'picky' failed: ArithmeticError: no"):
        tokens_of(bad)
    assert tokens_of(good) == toy_answer([2], 5)
    engine.close()
