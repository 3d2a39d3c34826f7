"""Recipes give every tensor the format that a file of that name is known to have."""

from __future__ import annotations

import dataclasses

import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.quant import FORMATS
from halfbyte.quant.assign import FALLBACKS, fitting, formats_for
from halfbyte.quant.recipe import ModelFacts
from halfbyte.quant.recipes import ALIASES, RECIPES, recipe_named
from halfbyte.quant.roles import is_quantizable

FACTS = ModelFacts("llama", 32, gqa=1)
EVERY_RECIPE = pytest.mark.parametrize("name", RECIPES)


def shapes(columns=256, layers=32, tied=False, experts=0):
    found = {"token_embd.weight": (columns, 40), "output_norm.weight": (columns,)}
    if not tied:
        found["output.weight"] = (columns, 40)
    for layer in range(layers):
        at = f"blk.{layer}"
        found |= {f"{at}.{stem}.weight": (columns, 8) for stem in ("attn_q", "attn_k", "attn_v", "attn_output")}
        stacks = {f"{at}.ffn_{kind}_exps.weight": (columns, 8, experts) for kind in ("gate", "up", "down")}
        plain = {f"{at}.ffn_{kind}.weight": (columns, 8) for kind in ("gate", "up", "down")}
        found |= stacks | {f"{at}.ffn_gate_inp.weight": (columns, experts)} if experts else plain
    return found


def mix(name, facts=FACTS, **shape):
    """Format names to the tensors that have them: `ffn_down` for all layers, `ffn_down:0-3,7` for some."""
    found = formats_for(recipe_named(name), shapes(layers=facts.n_layers, **shape), facts)
    layers = {}
    for tensor, format in found.items():
        stem = tensor.removesuffix(".weight")
        if stem.startswith("blk."):
            _, layer, stem = stem.split(".")
            layers.setdefault((format.name, stem), []).append(int(layer))
        else:
            layers[format.name, stem] = list(range(facts.n_layers))
    table = {}
    for (format, stem), at in layers.items():
        where = "" if len(at) == facts.n_layers else f":{ranges(at)}"
        table.setdefault(format, set()).add(f"{stem}{where}")
    return table


def ranges(numbers):
    starts = [i for i in numbers if i - 1 not in numbers]
    ends = [i for i in numbers if i + 1 not in numbers]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


GATES = {"attn_q", "attn_k", "ffn_gate", "ffn_up"}
HALF = "0-3,6,9,12,15,18,21,24,27-31"


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("f16", {"f16": GATES | {"attn_v", "attn_output", "ffn_down", "token_embd", "output"}}),
        ("q8_0", {"q8_0": GATES | {"attn_v", "attn_output", "ffn_down", "token_embd", "output"}}),
        ("q4_0", {"q4_0": GATES | {"attn_v", "attn_output", "ffn_down", "token_embd"}, "q6_k": {"output"}}),
        ("q2_k", {"q2_k": GATES | {"token_embd"}, "q3_k": {"attn_v", "attn_output", "ffn_down"}, "q6_k": {"output"}}),
        (
            "q2_k_s",
            {
                "q2_k": GATES | {"attn_v", "attn_output", "token_embd", "ffn_down:4-31"},
                "q4_k": {"ffn_down:0-3"},
                "q6_k": {"output"},
            },
        ),
        (
            "q3_k_m",
            {
                "q3_k": GATES | {"token_embd"},
                "q4_k": {"attn_v:2-31", "ffn_down:2-31", "attn_output"},
                "q5_k": {"attn_v:0-1", "ffn_down:0-1"},
                "q6_k": {"output"},
            },
        ),
        ("q3_k_l", {"q3_k": GATES | {"token_embd"}, "q5_k": {"attn_v", "ffn_down", "attn_output"}, "q6_k": {"output"}}),
        (
            "q4_k_s",
            {
                "q4_k": GATES | {"token_embd", "attn_output", "attn_v:4-31", "ffn_down:4-31"},
                "q5_k": {"attn_v:0-3", "ffn_down:0-3"},
                "q6_k": {"output"},
            },
        ),
        (
            "q4_k_m",
            {
                "q4_k": GATES
                | {"token_embd", "attn_output"}
                | {f"{stem}:4-5,7-8,10-11,13-14,16-17,19-20,22-23,25-26" for stem in ("attn_v", "ffn_down")},
                "q6_k": {"output", f"attn_v:{HALF}", f"ffn_down:{HALF}"},
            },
        ),
        (
            "iq2_m",
            {
                "iq2_s": GATES | {"ffn_down:4-31"},
                "iq3_s": {"attn_v", "attn_output", "ffn_down:0-3", "token_embd"},
                "q5_k": {"output"},
            },
        ),
        (
            "iq1_s",
            {
                "iq1_s": GATES | {"ffn_down:4-31"},
                "q2_k": {"attn_v", "ffn_down:0-3", "token_embd"},
                "iq2_xxs": {"attn_output"},
                "q5_k": {"output"},
            },
        ),
        (
            "iq3_xs",
            {
                "iq3_s": {
                    "attn_v",
                    "attn_output",
                    "ffn_down",
                    "token_embd",
                    "ffn_gate:0-3,28-31",
                    "ffn_up:0-3,28-31",
                },
                "iq3_xxs": {"attn_q", "attn_k", "ffn_gate:4-27", "ffn_up:4-27"},
                "q6_k": {"output"},
            },
        ),
        (
            "tq1_0",
            {"tq1_0": GATES | {"attn_v", "attn_output", "ffn_down"}, "q4_k": {"token_embd"}, "q6_k": {"output"}},
        ),
    ],
)
def test_the_mix_of_a_plain_model(name, table):
    assert mix(name) == table


@pytest.mark.parametrize(
    ("name", "values"),
    [("q2_k", "q4_k"), ("q2_k_s", "q4_k"), ("iq2_xs", "q4_k"), ("iq4_xs", "q5_k"), ("iq3_s", "q4_k")],
)
def test_values_that_many_heads_share_get_more_bits(name, values):
    few = dataclasses.replace(FACTS, gqa=4)
    assert "attn_v" in mix(name, few)[values]
    assert "attn_v" not in mix(name).get(values, ())


def test_eight_experts_keep_attention_in_eight_bits():
    table = mix("q4_k_m", dataclasses.replace(FACTS, n_experts=8), experts=8)
    assert table["q8_0"] == {"attn_v", "attn_k"}
    assert table["q5_k"] == {"attn_output"}
    assert f"ffn_down_exps:{HALF}" in table["q6_k"]
    assert not any("gate_inp" in stem for stems in table.values() for stem in stems)


def test_experts_alone_are_mxfp4():
    table = mix("mxfp4_moe", dataclasses.replace(FACTS, n_experts=4), experts=4)
    assert table["mxfp4"] == {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}
    assert table.keys() == {"mxfp4", "q8_0"}


def test_eighty_layers_keep_five_bits_of_values():
    large = ModelFacts("llama", 80, gqa=8)
    assert "attn_v" in mix("q3_k_s", large)["q5_k"]
    assert "q5_k" not in mix("q3_k_s", dataclasses.replace(large, arch="gemma3"))


def test_falcon_has_rules_of_its_own():
    table = mix("q4_k_m", dataclasses.replace(FACTS, arch="falcon"))
    assert "output" in table["q8_0"]
    assert "ffn_down:0-1" in table["q6_k"]


def test_calibration_changes_what_is_careful():
    known = dataclasses.replace(FACTS, calibrated=True)
    assert mix("q4_0", known)["q4_1"] == {"ffn_down:0-3"}
    assert mix("iq4_xs")["q5_k"] == {"ffn_down:0-3"}
    assert "q5_k" not in mix("iq4_xs", known)


def test_an_embedding_that_is_the_output_too_is_treated_as_one():
    assert "token_embd" in mix("q3_k_m", tied=True)["q6_k"]
    assert "token_embd" in mix("q3_k_m", tied=False)["q3_k"]


@EVERY_RECIPE
def test_every_format_divides_the_rows_and_can_be_written(name):
    for columns in (256, 288, 45):
        recipe = recipe_named(name)
        found = formats_for(recipe, shapes(columns), FACTS)
        assert all(columns % format.block_len == 0 for format in found.values())
        if columns == 45 and recipe.base not in ("f32", "bf16"):
            assert {format.name for format in found.values()} == {"f16"}


@EVERY_RECIPE
def test_pure_is_one_format(name):
    found = formats_for(recipe_named(name), shapes(), FACTS, pure=True)
    assert {format.name for format in found.values()} == {recipe_named(name).base}


def test_rows_that_do_not_divide_fall_back_to_the_next_format_up():
    expected = {"q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0", "iq3_s": "iq4_nl"}
    assert {name: fitting(name, 288).name for name in expected} == expected
    assert fitting("q4_k", 45).name == "f16"
    assert fitting("q4_k", 512).name == "q4_k"
    assert all(FORMATS[a].bits_per_weight <= FORMATS[b].bits_per_weight for a, b in FALLBACKS.items())


def test_formats_of_long_blocks_all_have_a_fallback():
    assert {name for name in FORMATS if FORMATS[name].block_len > 32} == FALLBACKS.keys()


@pytest.mark.parametrize(
    ("name", "shape", "touched"),
    [
        ("blk.0.attn_q.weight", (64, 64), True),
        ("blk.0.attn_q.bias", (64, 64), False),
        ("blk.0.attn_norm.weight", (64,), False),
        ("blk.0.attn_q_norm.weight", (64, 4), False),
        ("blk.0.ffn_gate_inp.weight", (64, 8), False),
        ("blk.0.ffn_gate_exps.weight", (64, 8, 4), True),
        ("blk.0.ssm_conv1d.weight", (4, 64), False),
        ("token_types.weight", (64, 2), False),
        ("blk.0.x.weight", (64, 1, 1), False),
    ],
)
def test_what_is_touched(name, shape, touched):
    assert is_quantizable(name, shape) is touched


def test_names_in_either_case_and_short():
    assert recipe_named("Q4_K_M") is recipe_named("q4_k") is RECIPES["q4_k_m"]
    assert all(target in RECIPES for target in ALIASES.values())
    assert all(name == recipe.name for name, recipe in RECIPES.items())
    with pytest.raises(UnsupportedError, match=r"unknown recipe 'q4_m'; did you mean 'q4_\w+'\?; known: f32, f16"):
        recipe_named("q4_m")


def test_every_format_of_a_recipe_exists():
    named = {rule.format for recipe in RECIPES.values() for rule in recipe.rules}
    named |= {name for recipe in RECIPES.values() for name in (recipe.base, recipe.output)}
    assert named <= set(FORMATS)
