"""A plan says what every tensor becomes, and how large the file will be."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.formats import Typed, open_gguf
from halfbyte.quant import FORMATS
from halfbyte.quant.recipes import recipe_named
from halfbyte.tools.quantize.choices import Choices
from halfbyte.tools.quantize.facts import facts_of
from halfbyte.tools.quantize.override import Override, format_of, spell
from halfbyte.tools.quantize.plan import make_plan
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def source(folder):
    return open_gguf(make_tiny_gguf(folder / "source.gguf", n_embd=256, n_layers=2, weights="f16"))


@pytest.fixture(scope="module")
def quantized(folder):
    return open_gguf(make_tiny_gguf(folder / "quantized.gguf", n_embd=256, n_layers=2, weights="q8_0"))


def choices(recipe="q4_k_m", *types, **more):
    return Choices(recipe_named(recipe), tuple(map(Override.parse, types)), **more)


def targets(plan):
    return {tensor.name: tensor.target.name for tensor in plan.tensors}


def test_matrices_change_and_vectors_stay(source):
    found = targets(make_plan(source, choices("q5_k_s")))
    assert found["blk.0.attn_q.weight"] == "q5_k"
    assert found["output.weight"] == "q6_k"
    assert found["blk.0.attn_norm.weight"] == found["output_norm.weight"] == "f32"
    assert list(found) == list(source.tensors)


def test_the_first_override_that_fits_wins(source):
    plan = make_plan(source, choices("q4_0", r"blk\.1\.ffn=q8_0", "ffn_down=Q6_K", "^token_embd=bf16"))
    found = targets(plan)
    assert found["blk.1.ffn_down.weight"] == "q8_0"
    assert found["blk.0.ffn_down.weight"] == "q6_k"
    assert found["token_embd.weight"] == "bf16"
    assert found["blk.0.ffn_up.weight"] == "q4_0"
    assert found["blk.1.ffn_norm.weight"] == "f32"


def test_overrides_win_over_pure_too(source):
    found = targets(make_plan(source, choices("q4_k_m", "attn_v=q8_0", pure=True)))
    assert (found["blk.0.attn_v.weight"], found["output.weight"]) == ("q8_0", "q4_k")


@pytest.mark.parametrize("tied", [False, True])
def test_the_output_stays_where_it_is_asked_to(tmp_path, tied):
    path = make_tiny_gguf(tmp_path / "m.gguf", n_embd=256, n_layers=1, weights="f16", tied=tied)
    with open_gguf(path) as file:
        found = targets(make_plan(file, choices(keep_output=True)))
    assert found["token_embd.weight" if tied else "output.weight"] == "f16"
    assert found["blk.0.ffn_up.weight"] == "q4_k"
    assert tied or found["token_embd.weight"] == "q4_k"


def test_rows_that_do_not_divide_fall_back_and_say_so(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", n_embd=64, n_ff=256, n_layers=1, weights="f16")
    with open_gguf(path) as file:
        plan = make_plan(file, choices("q4_k_s"))
    found = {tensor.name: (tensor.target.name, tensor.wish, tensor.fell_back) for tensor in plan.tensors}
    assert found["blk.0.ffn_up.weight"] == ("q5_0", "q4_k", True)
    assert found["blk.0.ffn_down.weight"] == ("q4_k", "q4_k", False)
    assert found["output_norm.weight"] == ("f32", "f32", False)


def test_what_is_quantized_already_is_not_quantized_again_unasked(quantized):
    wanted = r"16 tensors are quantized already, 'token_embd.weight' first \(q8_0\).*--allow-requantize"
    with pytest.raises(ConfigError, match=wanted):
        make_plan(quantized, choices("q4_0"))
    assert targets(make_plan(quantized, choices("q4_0", allow_requantize=True)))["blk.0.attn_q.weight"] == "q4_0"


def test_tensors_that_keep_their_format_are_no_second_loss(quantized):
    plan = make_plan(quantized, choices("q8_0"))
    assert not any(tensor.changes for tensor in plan.tensors)


def test_metadata_stay_and_tell_how_the_file_was_made(source):
    typed = choices("q3_k_l", "attn_v=q8_0", keep_output=True)
    metadata = make_plan(source, typed, {"quantize.imatrix.file": "i.gguf"}).metadata
    assert metadata["general.file_type"] == Typed(13, "u32")
    assert metadata["general.quantization_version"] == Typed(2, "u32")
    assert metadata["halfbyte.recipe"] == "q3_k_l --keep-output --type attn_v=q8_0"
    assert metadata["quantize.imatrix.file"] == "i.gguf"
    for key in source.metadata.keys() - {"general.file_type", "general.quantization_version"}:
        kept = metadata[key]
        assert kept.type == source.types[key]
        assert np.array_equal(kept.value, source.metadata[key])


def test_keys_of_a_split_model_go(tmp_path):
    split = {"split.no": Typed(0, "u16"), "split.count": Typed(1, "u16"), "split.tensors.count": Typed(3, "i32")}
    path = make_tiny_gguf(tmp_path / "m.gguf", n_layers=1, weights="f16", metadata=split)
    with open_gguf(path) as file:
        assert not make_plan(file, choices("q8_0")).metadata.keys() & split.keys()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ffn_down", "is not REGEX=FORMAT"),
        ("=q4_k", "is not REGEX=FORMAT"),
        ("(=q4_k", r"is no regular expression"),
        ("x=q4_kk", "did you mean 'q4_k'"),
        ("x=i8", "i8 holds no weights"),
    ],
)
def test_a_wrong_override_says_which_half_is_wrong(text, problem):
    with pytest.raises(ConfigError, match=problem):
        Override.parse(text)


def test_an_override_that_fits_nothing_is_a_mistake(source):
    with pytest.raises(ConfigError, match=r"'ffn_dwn=q8_0' fits no tensor.*'token_embd\.weight'"):
        make_plan(source, choices("q4_0", "ffn_dwn=q8_0"))


def test_a_mix_spelt_as_overrides_is_the_same_mix():
    names = [f"blk.{i}.{stem}.weight" for i in range(12) for stem in ("attn_q", "ffn_down", "ffn_down_exps")]
    names += ["output.weight", "token_embd.weight", "per_layer_token_embd.weight"]
    rng = np.random.default_rng(3)
    formats = {name: FORMATS[str(rng.choice(["q4_k", "q5_k", "q6_k"]))] for name in names}
    spelt = spell(formats)
    again = [Override.parse(str(override)) for override in spelt]
    assert {name: format_of(name, again) for name in names} == formats
    assert len(spell(dict.fromkeys(names, FORMATS["q4_k"]))) == 6


@pytest.mark.parametrize(
    ("heads", "shared", "gqa"),
    [(8, 2, 4), (8, None, 1), (8, 0, 0), (Typed([0, 8], "u32"), Typed([0, 2], "u32"), 0), (Typed([8], "u32"), 4, 2)],
)
def test_facts_come_from_metadata_of_any_shape(tmp_path, heads, shared, gqa):
    keys = {"llama.attention.head_count": heads, "llama.attention.head_count_kv": shared, "llama.expert_count": 8}
    path = make_tiny_gguf(tmp_path / "m.gguf", n_layers=1, metadata=keys)
    with open_gguf(path) as file:
        facts = facts_of(file, calibrated=True)
    assert (facts.arch, facts.n_layers, facts.n_experts, facts.gqa, facts.calibrated) == ("llama", 1, 8, gqa, True)
