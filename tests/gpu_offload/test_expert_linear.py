"""Products of experts against those of decoded matrices."""

import numpy as np
import pytest

from halfbyte.gpu_offload.packing import pack_all
from halfbyte.model.program import Dispatch, ExpertLinear, MoeRoute
from halfbyte.model.reference_expert_ops import expert_linear
from halfbyte.model.reference_state import State
from tests.gpu_offload.row_ops import ByHand, Run
from tests.gpu_offload.weights import random_weight

RNG = np.random.default_rng(9)
EXPERTS, USED = 5, 2
ROUTED = (MoeRoute("scores", "route", USED, "softmax", True), Dispatch("x", "route", "dealt"))
PLANES = ("planes", "records")
GATE, UP = ExpertLinear("dealt", "route", "w", "y", EXPERTS), ExpertLinear("dealt", "route", "u", "z", EXPERTS, "b")


class Experts:
    """Two matrices of experts on a device, and rows of tokens for them."""

    def __init__(self, device, formats, rows, columns, tokens):
        names = dict(zip("wu", formats, strict=True))
        self.weights = {name: random_weight(f, EXPERTS * rows, columns, called=name) for name, f in names.items()}
        self.bias = RNG.standard_normal(EXPERTS * rows).astype(np.float32)
        self.packed = pack_all(self.weights, device, None, dict.fromkeys(self.weights, EXPERTS))
        self.given = {
            "scores": RNG.standard_normal((tokens, EXPERTS)).astype(np.float32),
            "x": RNG.standard_normal((tokens, columns)).astype(np.float32),
        }
        self.widths = {"scores": EXPERTS, "route": 2 * USED, "x": columns, "dealt": columns, "y": rows, "z": rows}
        self.device = device

    def run(self, ops=(GATE, UP), tokens=slice(None), bucket=0):
        plain = all(self.packed[op.weight].family.plain for op in ops)
        forms = {} if plain else {"dealt": PLANES}
        low = ByHand((*ROUTED, *ops), self.widths, forms, packed=self.packed)
        given = {name: values[tokens] for name, values in self.given.items()}
        return Run(self.device, low, given, {"b": self.bias}, bucket=bucket)

    def expected(self, made, op):
        """The product of the very numbers that the kernel got."""
        dealt = made.planes("dealt") if made.low.wanted else made.value("dealt")
        biases = {"b": self.bias.reshape(EXPERTS, -1)}
        state = State(
            None, None, self.weights, biases, {"dealt": dealt.astype(np.float32), "route": made.value("route")}
        )
        expert_linear(op, state)
        return state.values[op.out]


def close(result, expected):
    assert np.abs(result - expected).max() <= 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize("format", ["q8_0", "q4_k", "mxfp4"])
@pytest.mark.parametrize(("tokens", "bucket"), [(1, 1), (7, 8), (60, 60)])
def test_every_row_meets_the_matrix_of_its_expert(device, format, tokens, bucket):
    """With one token, with tiles of several quads, and with experts of more than one tile."""
    experts = Experts(device, (format, format), 40, 256, tokens)
    made = experts.run(bucket=bucket)
    assert len(made.low.calls) == 4, "both matrices meet the rows in one launch"
    for op in (GATE, UP):
        close(made.value(op.out), experts.expected(made, op))


@pytest.mark.parametrize("columns", [32, 320, 1056])
def test_columns_that_fill_no_unit(device, columns):
    """With the most columns, shared memory has room for few tokens at a time."""
    experts = Experts(device, ("q8_0", "q8_0"), 20, columns, 14)
    made = experts.run(bucket=16)
    close(made.value("z"), experts.expected(made, UP))


def test_matrices_of_two_families_have_a_launch_each(device):
    experts = Experts(device, ("q8_0", "q4_k"), 24, 256, 3)
    made = experts.run(bucket=4)
    assert len(made.low.calls) == 5
    for op in (GATE, UP):
        close(made.value(op.out), experts.expected(made, op))


@pytest.mark.parametrize("format", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("tokens", "columns"), [(1, 40), (25, 33)])
def test_plain_floats(device, format, tokens, columns):
    experts = Experts(device, (format, format), 21, columns, tokens)
    made = experts.run(bucket=tokens)
    for op in (GATE, UP):
        close(made.value(op.out), experts.expected(made, op))


@pytest.mark.parametrize("format", ["q4_k", "f32"])
def test_a_token_gets_the_same_in_any_company(device, format):
    experts = Experts(device, (format, format), 24, 512, 23)
    whole = experts.run(bucket=24)
    places = whole.scratch("expert_places").reshape(-1, USED)
    for token in (0, 22):
        alone = experts.run(tokens=slice(token, token + 1))
        for name in ("y", "z"):
            assert np.array_equal(alone.value(name), whole.value(name)[places[token]])
