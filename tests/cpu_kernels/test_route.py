"""Which experts are chosen with which weights, and in which order their rows lie: the kernel by itself."""

import numpy as np
import pytest

from halfbyte.cpu_kernels import dealing
from halfbyte.cpu_kernels.direct import DirectKernels
from halfbyte.model.program import MoeRoute
from halfbyte.model.reference_expert_ops import moe_route, order_of
from halfbyte.model.reference_state import State
from tests.cpu_kernels.kernel_sets import DETECTED, ready

GATES = ("softmax", "sigmoid")


class Routed:
    """What the kernel makes of scores f32[T, E]; rows lie in memory that is NaN around them."""

    def __init__(self, scores, used, gate="softmax", normalise=True, scale=1.0):
        ready()
        tokens, experts = scores.shape
        rows = tokens * used
        x = np.full((tokens, (experts + 31) // 32 * 32), np.nan, np.float32)
        x[:, :experts] = scores
        out = np.full((tokens, (2 * used + 31) // 32 * 32), np.nan, np.float32)
        order = np.full(dealing.order_bytes(experts, rows) // 4 + 2, -1, np.int32)
        order = order[order.ctypes.data % 8 // 4 :]
        count, at = np.array([tokens], np.int64), order.ctypes.data
        operands = {
            "count": count.ctypes.data,
            "x": x.ctypes.data,
            "out": out.ctypes.data,
            "used": used,
            "experts": experts,
            "normalise": int(normalise),
            "scale": int(np.float32(scale).view(np.int32)),
            "stride": x.strides[0],
            "out_stride": out.strides[0],
            "order": at,
            "counters": at + dealing.counters_at(experts, rows),
            "sources": at + dealing.sources_at(experts, rows),
            "places": at + dealing.places_at(experts, rows),
        }
        kernel = f"route_{gate}"
        DirectKernels([kernel], DETECTED).call(kernel, "route", operands)
        self.route = out[:, : 2 * used].copy()
        self.chosen, self.weights = self.route[:, :used].astype(int), self.route[:, used:]
        words = order[: len(order) // 2 * 2].view(np.int64)
        self.dealt, self.active, self.most = words[:3].tolist()
        begin = dealing.RECORDS // 8
        self.records = words[begin : begin + 2 * (self.active + 1)].reshape(-1, 2)
        begin = dealing.sources_at(experts, rows) // 4
        self.sources = order[begin : begin + rows]
        begin = dealing.places_at(experts, rows) // 4
        self.places = order[begin : begin + rows]


def expected(scores, used, gate="softmax", normalise=True, scale=1.0):
    state = State(None, None, {}, {}, {"x": np.asarray(scores, np.float32)})
    moe_route(MoeRoute("x", "route", used, gate, normalise, scale), state)
    return state.values["route"]


def check_choice(scores, used, **options):
    found, wanted = Routed(scores, used, **options), expected(scores, used, **options)
    assert np.array_equal(found.chosen, wanted[:, :used])
    assert np.allclose(found.weights, wanted[:, used:], rtol=1e-6, atol=1e-7)
    return found


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("experts", "used"), [(1, 1), (5, 2), (8, 8), (16, 3), (60, 4), (128, 8), (131, 33)])
def test_choice_and_weights_are_the_references(gate, normalise, experts, used, rng):
    scores = 3 * rng.standard_normal((19, experts)).astype(np.float32)
    check_choice(scores, used, gate=gate, normalise=normalise, scale=2.5)


@pytest.mark.parametrize("experts", [7, 64, 100])
def test_among_equals_the_lower_number_comes_first(experts, rng):
    check_choice(rng.integers(0, 3, (50, experts)).astype(np.float32), 5)
    check_choice(np.zeros((1, experts), np.float32), 5)


def test_scores_that_are_no_numbers_come_last_and_choose_somebody():
    scores = np.array([[np.nan, 1, -np.inf, np.nan, -np.inf], [np.nan] * 5, [-np.inf] * 5], np.float32)
    found = Routed(scores, 4)
    assert found.chosen.tolist() == [[0, 1, 2, 4], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert found.dealt == 12


def test_large_scores_make_no_infinite_weights():
    scores = np.array([[3000, 2999, -3000, 0], [-3000, -3001, -3000, -2999]], np.float32)
    check_choice(scores, 2)
    check_choice(scores, 3, normalise=False)


@pytest.mark.parametrize("tokens", [0, 1, 2, 70])
@pytest.mark.parametrize("used", [1, 3])
def test_rows_are_sorted_by_expert_and_then_by_token(tokens, used, rng):
    scores = rng.standard_normal((tokens, 9)).astype(np.float32)
    scores[:, [0, 4, 8]] -= 100  # three that nobody chooses
    found = Routed(scores, used)
    order = order_of(found.route)
    assert found.dealt == tokens * used
    assert found.sources.tolist() == (order // used).tolist()
    assert found.places[order].tolist() == list(range(tokens * used))
    counts = np.bincount(found.chosen.reshape(-1), minlength=9)
    assert found.records[:-1, 0].tolist() == np.flatnonzero(counts).tolist()
    assert np.diff(found.records[:, 1]).tolist() == counts[counts > 0].tolist()
    assert found.most == counts.max(initial=0)
