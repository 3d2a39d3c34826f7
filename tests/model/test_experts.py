"""What the metadata say of experts, and which layers have them."""

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.model.metadata import Metadata
from halfbyte.model.program import ExpertLinear, GatedAct
from halfbyte.model.read_experts import read_experts
from halfbyte.model.spec import Experts

GIVEN = {"x.expert_count": 8, "x.expert_used_count": 2, "x.feed_forward_length": 64}
PLAIN = Experts(8, 2, 64)


def read(**changes):
    metadata = Metadata(GIVEN | {f"x.{key}": value for key, value in changes.items()}, "x")
    return read_experts(metadata), metadata.problems


def test_a_model_without_the_key_has_no_experts():
    assert read_experts(Metadata({}, "x")) is None
    assert read_experts(Metadata({"x.expert_count": 0}, "x")) is None


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({}, PLAIN),
        ({"expert_feed_forward_length": 32}, replace(PLAIN, n_ff=32)),
        ({"expert_weights_norm": False}, replace(PLAIN, normalise=False)),
        ({"expert_gating_func": 1, "expert_weights_norm": False}, replace(PLAIN, normalise=False)),
        ({"expert_gating_func": 2}, replace(PLAIN, gate="sigmoid")),
        ({"expert_gating_func": 3, "expert_weights_norm": False}, PLAIN),
        ({"expert_weights_scale": 2.5}, replace(PLAIN, scale=2.5)),
        ({"expert_weights_scale": 0.0}, PLAIN),
    ],
)
def test_keys_say_how_experts_are_chosen_and_weighed(keys, wanted):
    assert read(**keys) == (wanted, {})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("expert_used_count", 9, "9 of 8"),
        ("expert_used_count", None, "missing"),
        ("expert_count", 1 << 20, "1024"),
        ("expert_feed_forward_length", 0, "from 1"),
    ],
)
def test_what_makes_no_sense_is_noted(key, value, said):
    assert said in read(**{key: value})[1][f"x.{key}"]


@pytest.mark.parametrize(("key", "value"), [("expert_gating_func", 7), ("expert_group_count", 8)])
def test_ways_to_choose_that_we_lack_are_refused(key, value):
    with pytest.raises(UnsupportedError, match=rf"x\.{key}"):
        read(**{key: value})


MIXTRAL = {"llama.expert_count": 4, "llama.expert_used_count": 2}
MATRICES = {"ffn_gate_exps": (4, 128, 64), "ffn_up_exps": (4, 128, 64), "ffn_down_exps": (4, 64, 128)}


def experts_of(layer, rng):
    tensors = {f"blk.{layer}.{stem}.weight": rng.normal(size=shape) for stem, shape in MATRICES.items()}
    dense = {f"blk.{layer}.{stem}.weight": None for stem in ("ffn_gate", "ffn_up", "ffn_down")}
    return tensors | dense | {f"blk.{layer}.ffn_gate_inp.weight": rng.normal(size=(4, 64))}


def test_a_layer_has_experts_where_the_file_has_them(bound, rng):
    model = bound("llama", metadata=MIXTRAL, tensors=experts_of(1, rng))
    experts = [op for op in model.program.ops if isinstance(op, ExpertLinear)]
    assert {op.weight for op in experts} == {f"blk.1.{stem}.weight" for stem in MATRICES}
    assert len([op for op in model.program.ops if isinstance(op, GatedAct)]) == 3
    assert model.weights["blk.1.ffn_up_exps.weight"].shape == (4 * 128, 64)


def test_an_expert_too_few_is_said_to_be(bound, rng):
    tensors = experts_of(1, rng) | {"blk.1.ffn_up_exps.weight": np.ones((3, 128, 64))}
    with pytest.raises(FormatError, match=r"blk\.1\.ffn_up_exps\.weight is \[64, 128, 3\]"):
        bound("llama", metadata=MIXTRAL, tensors=tensors)


def test_an_architecture_that_never_has_experts_refuses_them(bound):
    with pytest.raises(UnsupportedError, match=r"qwen2\.expert_count"):
        bound("qwen2", metadata={"qwen2.expert_count": 4})
