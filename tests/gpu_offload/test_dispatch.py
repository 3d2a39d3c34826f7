"""The plan of a route, rows dealt out to experts by it, and what they say put together again."""

import numpy as np
import pytest

from halfbyte.gpu_offload.routed import TILE_ROWS, most_tiles
from halfbyte.model.program import Add, Combine, Dispatch, MoeRoute, Scale
from halfbyte.model.reference_expert_ops import combine, dispatch, moe_route, order_of
from halfbyte.model.reference_state import State
from tests.gpu_offload.row_ops import ByHand, Run

RNG = np.random.default_rng(7)
PLANES = ("rows", "planes", "records")
WIDTHS = {"dealt": 50, "told": 50, "mixed": 50, "x": 50, "y": 50}


def run(device, scores, x, used, *more, forms=(), bucket=0):
    ops = (MoeRoute("scores", "route", used, "softmax", True), Dispatch("x", "route", "dealt"), *more)
    widths = WIDTHS | {"scores": scores.shape[1], "route": 2 * used}
    low = ByHand(ops, widths, dict(forms))
    return Run(device, low, {"scores": scores, "x": x}, bucket=bucket)


def reference(scores, x, used, factor=3.0):
    state = State(None, None, {}, {}, {"scores": scores, "x": x})
    moe_route(MoeRoute("scores", "route", used, "softmax", True), state)
    dispatch(Dispatch("x", "route", "dealt"), state)
    state.values["told"] = state.values["dealt"] * np.float32(factor)
    combine(Combine("told", "route", "mixed"), state)
    return state.values


def inputs(tokens, experts, unused=()):
    scores = RNG.standard_normal((tokens, experts)).astype(np.float32)
    scores[:, list(unused)] -= 100
    return scores, RNG.standard_normal((tokens, 50)).astype(np.float32)


@pytest.mark.parametrize(("tokens", "bucket"), [(1, 1), (1, 4), (2, 2), (33, 40), (150, 150)])
@pytest.mark.parametrize("used", [1, 3])
def test_rows_are_sorted_by_expert_and_then_by_token(device, tokens, bucket, used):
    scores, x = inputs(tokens, 9, [0, 4, 8])
    made, expected = run(device, scores, x, used, bucket=bucket), reference(scores, x, used)
    order = order_of(expected["route"])
    rows = tokens * used
    assert made.scratch("expert_sources")[:rows].tolist() == (order // used).tolist()
    assert made.scratch("expert_places")[order].tolist() == list(range(rows))
    assert np.array_equal(made.value("dealt"), expected["dealt"])
    check_tiles(made.scratch("expert_plan"), expected["route"][:, :used].astype(int), made.sizes)


def check_tiles(plan, chosen, sizes):
    """Tiles cover the rows of each expert, in order, and there are no more than a grid is made for."""
    counts = np.bincount(chosen.reshape(-1), minlength=9)
    first, expected = 0, []
    for expert, rows in enumerate(counts.tolist()):
        for at in range(0, rows, TILE_ROWS):
            expected.append([expert, first + at, min(TILE_ROWS, rows - at), 0])
        first += rows
    assert plan[:2].tolist() == [chosen.size, len(expected)]
    assert plan[4 : 4 + 4 * len(expected)].reshape(-1, 4).tolist() == expected
    assert len(expected) <= most_tiles(sizes, chosen.shape[1], 9)
    assert len(plan) == 4 + 4 * most_tiles(sizes, chosen.shape[1], 9)


@pytest.mark.parametrize(("tokens", "experts", "used"), [(1, 128, 8), (9, 131, 5), (4, 1, 1), (3, 8, 8)])
def test_all_there_and_back(device, tokens, experts, used):
    scores, x = inputs(tokens, experts)
    more = (Scale("dealt", "told", 3.0), Combine("told", "route", "mixed"))
    forms = {"dealt": PLANES, "mixed": PLANES}
    made = run(device, scores, x, used, *more, forms=forms.items(), bucket=12)
    expected = reference(scores, x, used)
    assert np.array_equal(made.value("told"), expected["told"])
    assert np.abs(made.planes("dealt") - expected["dealt"]).max() <= 0.51 * np.abs(x).max() / (127 * 256)
    assert np.allclose(made.value("mixed"), expected["mixed"], rtol=1e-6, atol=1e-6)
    assert np.abs(made.planes("mixed") - made.value("mixed")).max() <= 0.51 * np.abs(3 * x).max() / (127 * 256)


@pytest.mark.parametrize("first", [True, False])
def test_a_sum_that_follows_is_computed_along(device, first):
    scores, x = inputs(6, 9)
    add = Add("x", "mixed", "y") if first else Add("mixed", "x", "y")
    more = (Scale("dealt", "told", 3.0), Combine("told", "route", "mixed"))
    made, apart = run(device, scores, x, 3, *more, add), run(device, scores, x, 3, *more)
    assert len(made.low.calls) == len(apart.low.calls)
    assert np.array_equal(made.value("y"), x + apart.value("mixed"))


def test_a_token_gets_the_same_in_any_company(device):
    scores, x = inputs(21, 9)
    more = (Scale("dealt", "told", 3.0), Combine("told", "route", "mixed"))
    whole = run(device, scores, x, 4, *more, bucket=32).value("mixed")
    for token in (0, 20):
        alone = run(device, scores[token : token + 1], x[token : token + 1], 4, *more).value("mixed")
        assert np.array_equal(alone[0], whole[token])


def test_halves_of_dealt_rows(device):
    scores, x = inputs(5, 9)
    forms = {"dealt": ("halves", "half_scales")}
    made = run(device, scores, x, 2, forms=forms.items(), bucket=8)
    assert np.abs(made.halves("dealt") - reference(scores, x, 2)["dealt"]).max() <= 2**-10 * np.abs(x).max()
