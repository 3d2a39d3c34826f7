"""What keys and factors a config becomes, in all the forms that configs have had."""

import math
from pathlib import Path

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.formats import Typed
from halfbyte.model.archs import ARCHS, CLASSES
from halfbyte.model.checkpoint_config import CheckpointConfig

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "vocab_size": 120,
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
LONG = {"short_factor": [1.0, 1.1] * 4, "long_factor": [2.0, 3.0] * 4}
QWEN3MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def config(**values):
    return CheckpointConfig(SIZES | values, Path("folder/config.json"))


def described(arch, **values):
    """Keys and computed tensors."""
    made = config(**values)
    keys, computed = ARCHS[arch].checkpoint.metadata(made), ARCHS[arch].checkpoint.computed(made)
    made.raise_problems()
    return dict(keys), {name: factors.tolist() for name, factors in computed.items()}


def targets(arch, **values):
    return {rule.target for rule in ARCHS[arch].checkpoint.tensors(config(**values))}


@pytest.mark.parametrize(
    ("arch", "older", "newer"),
    [
        ("llama", {"rope_theta": 5e5}, {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}),
        ("llama", {"rope_scaling": None}, {"rope_parameters": {"rope_type": "default"}}),
        (
            "qwen2",
            {"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 4.0}},
            {"rope_parameters": {"rope_theta": 1e6, "rope_type": "linear", "factor": 4.0}},
        ),
        (
            "qwen3",
            {"rope_theta": 1e6, "rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 16}},
            {"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0, "beta_fast": 16}},
        ),
        (
            "llama",
            {"rope_theta": 5e5, "rope_scaling": LLAMA3 | {"rope_type": "llama3"}},
            {"rope_parameters": LLAMA3 | {"rope_type": "llama3", "rope_theta": 5e5}},
        ),
        (
            "phi3",
            {"rope_scaling": LONG | {"type": "su"}, "original_max_position_embeddings": 32},
            {"rope_parameters": LONG | {"rope_type": "longrope", "original_max_position_embeddings": 32}},
        ),
        (
            "phi3",
            {"partial_rotary_factor": 0.5},
            {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        ),
        (
            "gemma3",
            {
                "sliding_window": 20,
                "sliding_window_pattern": 2,
                "rope_theta": 1e6,
                "rope_local_base_freq": 1e4,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            },
            {
                "sliding_window": 20,
                "sliding_window_pattern": 2,
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                },
            },
        ),
    ],
)
def test_older_and_newer_configs_say_the_same(arch, older, newer):
    assert described(arch, **older) == described(arch, **newer)


def test_plain_sizes_have_the_names_that_files_have():
    keys, computed = described("llama", head_dim=24)
    assert computed == {}
    assert keys == {
        "context_length": 256,
        "embedding_length": 64,
        "block_count": 4,
        "feed_forward_length": 96,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 24,
        "attention.value_length": 24,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "vocab_size": 120,
        "rope.freq_base": 1e4,
        "rope.dimension_count": 24,
    }


def test_factors_of_llama3_spare_fast_pairs_and_divide_slow_ones():
    scaling = LLAMA3 | {"rope_type": "llama3"}
    factors = described("llama", rope_theta=500.0, rope_scaling=scaling)[1]["rope_freqs.weight"]
    waves = 2 * np.pi * 500 ** (np.arange(8) / 8)
    fast, slow = waves < 32 / 4, waves > 32 / 1
    assert set(np.array(factors)[fast]) == {1}
    assert set(np.array(factors)[slow]) == {8}
    between = np.array(factors)[~fast & ~slow]
    assert 1 < between.min() <= between.max() < 8


def test_yarn_keeps_what_is_said_of_magnitudes():
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    keys = described("qwen2", rope_scaling=yarn)[0]
    assert keys["rope.scaling.type"] == "yarn"
    assert keys["rope.scaling.original_context_length"] == 64
    assert "rope.scaling.attn_factor" not in keys
    usual = 1 + 0.1 * math.log(4)
    assert described("qwen2", rope_scaling=yarn | {"attention_factor": 1.5})[0]["rope.scaling.attn_factor"] == (
        pytest.approx(1.5 / usual)
    )
    scales = {"mscale": 1.0, "mscale_all_dim": 1.0}
    assert described("qwen2", rope_scaling=yarn | scales)[0]["rope.scaling.attn_factor"] == pytest.approx(1 / usual)


def test_longrope_has_two_sets_of_factors_and_the_magnitude_of_the_stretch():
    keys, computed = described("phi3", rope_scaling=LONG | {"type": "longrope"}, original_max_position_embeddings=32)
    assert computed["rope_factors_long.weight"] == LONG["long_factor"]
    assert computed["rope_factors_short.weight"] == pytest.approx(LONG["short_factor"])
    assert keys["rope.scaling.attn_factor"] == pytest.approx(math.sqrt(1 + math.log(8) / math.log(32)))


@pytest.mark.parametrize("arch", ["qwen2", "qwen3", "qwen3moe", "smollm3", "olmo2", "gemma3"])
@pytest.mark.parametrize("kind", ["llama3", "longrope", "dynamic", "new"])
def test_a_scaling_that_the_file_could_not_express_is_refused(arch, kind):
    with pytest.raises(UnsupportedError, match=f"'{kind}'.*known: default, linear"):
        described(arch, sliding_window=8, **QWEN3MOE, rope_scaling=LLAMA3 | LONG | {"rope_type": kind})


def test_phi3_is_scaled_by_factors_alone():
    with pytest.raises(UnsupportedError, match=r"'linear'.*known: default, longrope"):
        described("phi3", rope_scaling={"type": "linear", "factor": 2.0})


@pytest.mark.parametrize(
    ("arch", "given", "window", "pattern"),
    [
        ("llama", {"sliding_window": 20}, 20, None),
        ("llama", {"sliding_window": None}, None, None),
        ("llama", {"sliding_window": 20, "layer_types": ["sliding_attention"] * 4}, 20, None),
        ("llama", {"sliding_window": 20, "layer_types": ["full_attention"] * 4}, None, None),
        ("qwen2", {"sliding_window": 20}, None, None),
        ("qwen2", {"sliding_window": 20, "use_sliding_window": False}, None, None),
        ("qwen2", {"sliding_window": 20, "use_sliding_window": True, "max_window_layers": 4}, None, None),
        (
            "qwen3",
            {"sliding_window": 20, "use_sliding_window": True, "max_window_layers": 3},
            20,
            [False, False, False, True],
        ),
        (
            "smollm3",
            {
                "sliding_window": 20,
                "use_sliding_window": True,
                "layer_types": ["full_attention"] * 3 + ["sliding_attention"],
            },
            20,
            [False, False, False, True],
        ),
        ("phi3", {"sliding_window": 20}, 20, None),
        ("phi3", {"sliding_window": None}, 0, None),
    ],
)
def test_a_window_counts_where_the_original_uses_it(arch, given, window, pattern):
    keys = described(arch, **given)[0]
    assert keys.get("attention.sliding_window") == window
    wanted = None if pattern is None else Typed(pattern, "bool")
    assert keys.get("attention.sliding_window_pattern") == wanted


@pytest.mark.parametrize(
    ("arch", "given", "said"),
    [
        ("llama", {"hidden_size": None}, "hidden_size is missing"),
        ("llama", {"num_attention_heads": 7}, "num_attention_heads is 7"),
        ("llama", {"sliding_window": 8, "layer_types": ["full_attention"]}, "1 kinds for 4 layers"),
        ("llama", {"sliding_window": 8, "layer_types": ["linear_attention"] * 4}, "'linear_attention', known"),
        ("llama", {"rope_scaling": LLAMA3 | {"rope_type": "llama3", "high_freq_factor": 1.0}}, "high_freq_factor is 1"),
        ("llama", {"num_local_experts": 4}, "num_experts_per_tok is missing"),
        (
            "phi3",
            {"rope_scaling": LONG | {"type": "su", "long_factor": [1.0]}},
            "long_factor has 1 factors for 8 pairs",
        ),
        ("phi3", {"rope_scaling": LONG | {"type": "su", "long_factor": "x"}}, "long_factor wants a list of positive"),
        ("phi3", {"rope_scaling": LONG | {"type": "su", "long_factor": [-1.0] * 8}}, "long_factor wants a list"),
        ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers has 2 entries for 4 layers"),
        ("smollm3", {"no_rope_layers": "often"}, "no_rope_layers wants a list of whole numbers"),
        ("qwen3moe", {}, "num_local_experts is missing"),
        ("qwen3moe", QWEN3MOE | {"num_experts": 5000}, "num_experts is 5000"),
    ],
)
def test_what_makes_no_sense_is_named(arch, given, said):
    with pytest.raises(FormatError, match=rf"folder/config\.json.*{said}"):
        described(arch, **given)


def test_layers_of_smollm3_are_listed_where_they_are_not_the_usual():
    def listed(**values):
        return described("smollm3", **values)[0].get("rope.layers")

    assert listed() is None
    assert listed(no_rope_layers=[1, 1, 1, 0]) is None
    assert listed(no_rope_layers=[0, 1, 1, 0]) == Typed([False, True, True, False], "bool")
    assert listed(no_rope_layer_interval=2) == Typed([True, False, True, False], "bool")


def test_experts_of_qwen3_are_where_the_config_puts_them():
    keys = described("qwen3moe", **QWEN3MOE)[0]
    assert (keys["expert_count"], keys["expert_used_count"], keys["expert_feed_forward_length"]) == (8, 2, 32)
    assert keys["expert_weights_norm"] is False
    assert described("qwen3moe", **QWEN3MOE, norm_topk_prob=True)[0]["expert_weights_norm"] is True
    mixed = targets("qwen3moe", **QWEN3MOE, decoder_sparse_step=2, mlp_only_layers=[3])
    assert {name for name in mixed if "ffn_gate" in name and "bias" not in name} == {
        "blk.0.ffn_gate.weight",
        "blk.1.ffn_gate_exps.weight",
        "blk.1.ffn_gate_inp.weight",
        "blk.2.ffn_gate.weight",
        "blk.3.ffn_gate.weight",
    }


def test_mixtral_is_a_llama_whose_experts_are_as_wide_as_a_feed_forward():
    assert CLASSES["MixtralForCausalLM"] == "llama"
    keys = described("llama", num_local_experts=8, num_experts_per_tok=2)[0]
    assert (keys["expert_count"], keys["expert_used_count"], keys["feed_forward_length"]) == (8, 2, 96)
    assert keys["rope.freq_base"] == 1e6
    made = targets("llama", num_local_experts=8, num_experts_per_tok=2)
    assert "blk.3.ffn_down_exps.weight" in made
    assert "blk.3.ffn_down.weight" not in made


def test_every_class_names_an_architecture_that_we_have():
    assert set(CLASSES.values()) <= set(ARCHS)
