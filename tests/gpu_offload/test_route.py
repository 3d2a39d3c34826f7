"""Which experts are chosen with which weights, against the reference."""

import numpy as np
import pytest

from halfbyte.model.program import MoeRoute
from halfbyte.model.reference_expert_ops import moe_route
from halfbyte.model.reference_state import State
from tests.gpu_offload.row_ops import ByHand, Run

RNG = np.random.default_rng(6)
GATES = ("softmax", "sigmoid")


def check(device, scores, used, gate="softmax", normalise=True, scale=1.0, bucket=0):
    """The route f32[T, 2 * used], found to be the reference's."""
    scores = np.asarray(scores, np.float32)
    op = MoeRoute("x", "route", used, gate, normalise, scale)
    low = ByHand((op,), {"x": scores.shape[1], "route": 2 * used})
    found = Run(device, low, {"x": scores}, bucket=bucket).value("route")
    state = State(None, None, {}, {}, {"x": scores})
    with np.errstate(invalid="ignore", over="ignore"):
        moe_route(op, state)
    assert np.array_equal(found[:, :used], state.values["route"][:, :used])
    assert np.allclose(found[:, used:], state.values["route"][:, used:], rtol=1e-6, atol=1e-7, equal_nan=True)
    return found


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("experts", "used"), [(1, 1), (5, 2), (8, 8), (16, 3), (60, 4), (128, 8), (131, 33), (300, 8)])
def test_choice_and_weights_are_the_references(device, gate, normalise, experts, used):
    check(device, 3 * RNG.standard_normal((5, experts)), used, gate, normalise, 2.5, bucket=8)


@pytest.mark.parametrize("experts", [7, 64, 100])
def test_among_equals_the_lower_number_comes_first(device, experts):
    check(device, RNG.integers(0, 3, (20, experts)), 5)
    check(device, np.zeros((1, experts)), 5)
    check(device, np.where(RNG.integers(0, 2, (5, experts)), 0.0, -0.0), 5)


@pytest.mark.parametrize("gate", GATES)
def test_scores_that_are_no_numbers_come_last_and_choose_somebody(device, gate):
    scores = [[np.nan, 1, -np.inf, np.nan, -np.inf], [np.nan] * 5, [-np.inf] * 5, [-1, -np.inf, np.nan, -2, np.inf]]
    found = check(device, scores, 4, gate)
    assert found[:, :4].tolist() == [[0, 1, 2, 4], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 3, 4]]


def test_large_scores_make_no_infinite_weights(device):
    scores = [[3000, 2999, -3000, 0], [-3000, -3001, -3000, -2999]]
    check(device, scores, 2)
    check(device, scores, 3, normalise=False)


def test_a_token_chooses_alike_in_any_company(device):
    scores = RNG.standard_normal((6, 60)).astype(np.float32)
    whole = check(device, scores, 4, bucket=16)
    assert np.array_equal(check(device, scores[4:5], 4)[0], whole[4])
