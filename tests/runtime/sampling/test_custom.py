import numpy as np
import pytest

from halfbyte.errors import RequestError
from tests.runtime.sampling.given import EVERY_STEP_OFF, PROBABILITIES, row_of, sampler


def only_odd(ids, logits):
    odd = ids % 2 == 1
    return ids[odd], logits[odd]


def reversed_order(ids, logits):
    return ids[::-1].tolist(), (-logits)[::-1]


def test_a_function_chooses_among_the_whole_vocabulary():
    it = sampler(samplers=[only_odd])
    assert it.sample(row_of(PROBABILITIES), 0) == 1


def test_a_function_may_change_logits_in_place_and_the_row_stays_whole():
    def favour_the_last(ids, logits):
        logits[-1] = 5
        return ids, logits

    it = sampler(samplers=[favour_the_last])
    row = row_of(PROBABILITIES)
    assert it.sample(row, 0) == 4
    assert row.tolist() == row_of(PROBABILITIES).tolist()


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_function_sees_what_the_steps_before_it_left(temperature):
    seen = []

    def look(ids, logits):
        seen.append((ids.tolist(), ids.dtype, logits.dtype))
        return ids, logits

    it = sampler(temperature=temperature, samplers=["top_k", look, "top_p"], top_k=3, seed=1)
    it.sample(row_of(PROBABILITIES), 0)
    assert seen == [([0, 1, 2], np.int32, np.float64)]


def test_candidates_are_ranked_anew_behind_a_function():
    it = sampler(temperature=1, samplers=[reversed_order, "top_k"], top_k=1, seed=1)
    assert it.sample(row_of(PROBABILITIES), 0) == 4


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "result",
    [None, 5, (), ([0],), ([0], [1], [2]), ([], []), ([0, 1], [1.0]), ([[0]], [[1.0]]), (["a"], [1.0]), ([0.5], [1.0]),
     ([0], ["x"]), ([0], [1j]), ([[0], 1], [1.0, 2.0])],
)  # fmt: skip
def test_a_result_that_is_none_is_told(result, place):
    def wrong(ids, logits):
        return result

    samplers = ["top_k"]
    samplers.insert(place, wrong)
    with pytest.raises(RequestError, match=r"sampler step 'wrong' must return \(ids, logits\)"):
        sampler(samplers=samplers).sample(row_of(PROBABILITIES), 0)


@pytest.mark.parametrize("ids", [[0, 0], [0, 5], [-1, 0], [2**40, 0]])
def test_ids_twice_or_from_elsewhere_are_told(ids):
    with pytest.raises(RequestError, match="an id twice or one that it was not given"):
        sampler(samplers=[lambda given, logits: (ids, [1.0, 2.0])]).sample(row_of(PROBABILITIES), 0)


@pytest.mark.parametrize("error", [KeyError("lost"), SystemExit(1), StopIteration()])
def test_what_a_function_raises_is_the_cause(error):
    def broken(ids, logits):
        raise error

    with pytest.raises(RequestError, match=f"the sampler step 'broken' failed: {type(error).__name__}") as caught:
        sampler(samplers=[broken]).sample(row_of(PROBABILITIES), 0)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("logit", [np.nan, -np.inf, np.inf])
def test_a_function_that_leaves_no_number(logit):
    def spoil(ids, logits):
        return ids, np.full(len(ids), logit)

    for params in ({}, {**EVERY_STEP_OFF}):
        with pytest.raises(RequestError, match="no finite logit"):
            sampler(samplers=[spoil], **params).sample(row_of(PROBABILITIES), 0)


def test_an_object_that_can_be_called_is_a_step():
    class Ban:
        def __init__(self, token):
            self.token = token

        def __call__(self, ids, logits):
            return ids[ids != self.token], logits[ids != self.token]

    assert sampler(samplers=[Ban(0), Ban(1)]).sample(row_of(PROBABILITIES), 0) == 2
    with pytest.raises(RequestError, match="'Ban' must"):
        sampler(samplers=[Ban(0), Ban("x")]).sample(row_of([1.0]), 0)
