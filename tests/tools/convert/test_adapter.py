"""PEFT adapters, converted or merged: the answers are those of the library that trained them."""

import json
import re

import numpy as np
import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from halfbyte import load
from halfbyte.cli.main import main
from halfbyte.errors import ConfigError, FormatError, UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.tools.convert.adapter import convert_adapter
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from halfbyte.tools.convert.merged_source import merged_source
from tests.tools.convert import tiny_llama
from tests.tools.convert.tiny_peft import IDS, logits_of, plain_logits, save_adapter


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A checkpoint, and `model.gguf` made of it."""
    folder = tiny_llama.save(tmp_path_factory.mktemp("base"), dtype=torch.float32)
    Conversion(folder, ConversionChoices("f32")).write(folder / "model.gguf")
    return folder


@pytest.fixture
def folder(tmp_path):
    """Where an adapter goes."""
    return tmp_path / "adapter"


def loaded(base, **options):
    return load(base / "model.gguf", backend="reference", kv="f32", **options)


def adapted_logits(base, folder, type="f32"):
    out = folder.parent / "adapter.gguf"
    convert_adapter(folder, base, out, type=type)
    with loaded(base, adapters=[out]) as llm:
        return logits_of(llm)


def distance(a, b):
    """Relative to how far logits go."""
    return float(np.abs(a - b).max() / np.abs(b).max())


CHOICES = {
    "all matrices": {},
    "alpha": {"lora_alpha": 1, "r": 2},
    "rank stabilised": {"use_rslora": True, "r": 6},
    "ranks": {"rank_pattern": {"q_proj": 3, "layers.1.mlp.up_proj": 8}},
    "alphas": {"alpha_pattern": {"down_proj": 2.5}, "rank_pattern": {"k_proj": 1}, "use_rslora": True},
    "the head": {"target_modules": ["lm_head", "v_proj"]},
    "some layers": {"layers_to_transform": [1], "target_modules": ["q_proj", "o_proj"]},
}


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_logits_are_those_of_peft(base, folder, choices):
    expected = save_adapter(base, folder, **choices)
    assert distance(expected, plain_logits(base)) > 0.01
    assert distance(adapted_logits(base, folder), expected) < 1e-4


def test_a_head_saved_along_must_be_the_bases(base, folder):
    save_adapter(base, folder, target_modules=["lm_head"])
    weights = folder / "adapter_model.safetensors"
    tensors = load_file(weights)
    (name,) = (name for name in tensors if "base_layer" in name)
    tensors[name][5] += 1
    save_file(tensors, weights)
    source = Conversion(base).source
    for use in (lambda: convert_adapter(folder, base, folder / "o.gguf"), lambda: merged_source(source, folder)):
        with pytest.raises(UnsupportedError, match=r"weights other than the base model's: .*lm_head\.base_layer"):
            use()


def test_halves_are_close(base, folder):
    expected = save_adapter(base, folder)
    assert distance(adapted_logits(base, folder, "f16"), expected) < 5e-3


@pytest.mark.parametrize("choices", [CHOICES["all matrices"], CHOICES["alphas"]], ids=["plain", "alphas"])
def test_merged_answers_are_those_of_the_adapter(base, folder, choices):
    expected = save_adapter(base, folder, **choices)
    merged = Conversion(base, ConversionChoices("f32", merge_lora=(folder,)))
    out = folder.parent / "merged.gguf"
    merged.write(out)
    with load(out, backend="reference", kv="f32") as llm:
        assert distance(logits_of(llm), expected) < 1e-4


def test_merging_reads_any_rows_and_scales(base, folder):
    save_adapter(base, folder, target_modules=["up_proj"])
    name = "model.layers.1.mlp.up_proj.weight"
    source = Conversion(base).source
    half, whole = (merged_source(source, folder, scale) for scale in (0.5, 1.0))
    before, after = source.read(name), whole.read(name)
    assert np.abs(after - before).max() > 0.01
    np.testing.assert_allclose(half.read(name), (before + after) / 2, atol=1e-6)
    np.testing.assert_allclose(whole.read(name, 7, 30), after[7:30], atol=1e-6)
    assert whole.tensors[name].dtype == "F32"
    other = "model.layers.1.mlp.down_proj.weight"
    assert np.array_equal(whole.read(other, 2, 5), source.read(other, 2, 5))


def test_the_file_is_as_llama_cpp_writes_it(base, folder):
    save_adapter(base, folder, target_modules=["q_proj", "down_proj"])
    out = folder.parent / "adapter.gguf"
    convert_adapter(folder, base, out, metadata={"general.name": "mine"})
    with open_gguf(out) as file:
        assert file.metadata["general.type"] == "adapter"
        assert file.metadata["adapter.type"] == "lora"
        assert file.metadata["general.architecture"] == "llama"
        assert file.metadata["adapter.lora.alpha"] == 6.0
        assert file.metadata["general.name"] == "mine"
        assert file.tensors["blk.0.ffn_down.weight.lora_a"].shape == (96, 4)
        assert file.tensors["blk.0.ffn_down.weight.lora_b"].shape == (4, 64)
        assert {info.format.name for info in file.tensors.values()} == {"f16"}
        assert len(file.tensors) == 8


def test_the_command_takes_a_folder_of_either_kind(base, folder, capsys):
    expected = save_adapter(base, folder, target_modules=["q_proj", "up_proj"])
    out, merged = (str(folder / name) for name in ("adapter.gguf", "merged.gguf"))
    assert main(["convert", str(folder), "--base", str(base), "-o", out, "--type", "f32"]) == 0
    assert main(["convert", str(base), "--merge-lora", str(folder), "-o", merged, "--type", "f32"]) == 0
    assert capsys.readouterr().out.split() == [out, merged]
    with loaded(base, adapters=[out]) as llm, load(merged, backend="reference", kv="f32") as other:
        assert distance(logits_of(llm), expected) < 1e-4
        assert distance(logits_of(other), expected) < 1e-4


def test_a_pickled_adapter_is_the_same(base, folder):
    expected = save_adapter(base, folder)
    weights = folder / "adapter_model.safetensors"
    torch.save(load_file(weights), folder / "adapter_model.bin")
    weights.unlink()
    assert distance(adapted_logits(base, folder), expected) < 1e-4


def test_the_base_is_found_where_the_adapter_says(base, folder):
    save_adapter(base, folder, target_modules=["q_proj"])
    convert_adapter(folder, None, folder / "out.gguf")
    assert (folder / "out.gguf").exists()
    edit(folder, base_model_name_or_path="somebody/else")
    with pytest.raises(ConfigError, match=re.escape("'somebody/else', which is no folder here; say where")):
        convert_adapter(folder, None, folder / "again.gguf")
    assert not (folder / "again.gguf").exists()


def edit(folder, **changes):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


REFUSED = {
    "use_dora": True,
    "modules_to_save": ["lm_head"],
    "bias": "all",
    "fan_in_fan_out": True,
    "init_lora_weights": "pissa",
    "lora_bias": True,
    "alora_invocation_tokens": [1, 2],
    "target_parameters": ["mlp.experts.gate_up_proj"],
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_is_more_than_pairs_is_refused_by_name(base, folder, key):
    save_adapter(base, folder, target_modules=["q_proj"])
    edit(folder, **{key: REFUSED[key]})
    for use in (lambda: convert_adapter(folder, base, folder / "o.gguf"), lambda: merged_source(None, folder)):
        with pytest.raises(UnsupportedError, match=key):
            use()


def test_other_kinds_of_adapters_are_refused(base, folder):
    save_adapter(base, folder, config=peft.IA3Config(target_modules=["k_proj"], feedforward_modules=[]))
    with pytest.raises(UnsupportedError, match="peft_type is 'IA3'; known: LORA"):
        convert_adapter(folder, base, folder / "o.gguf")


def test_embeddings_are_refused_by_name(base, folder):
    save_adapter(base, folder, target_modules=["embed_tokens"])
    with pytest.raises(UnsupportedError, match=r"changes embeddings, .*embed_tokens\.lora_embedding_A"):
        convert_adapter(folder, base, folder / "o.gguf")


def spoil(tensors, name):
    tensors[name][0, 0] = float("nan")


AT = "base_model.model.model.layers.0.self_attn.q_proj"
BROKEN = {
    "half": (lambda t: t.pop(f"{AT}.lora_B.weight"), r"layers.0.self_attn.q_proj has no lora_B"),
    "stray": (
        lambda t: t.update({f"{AT}.lora_C.weight": torch.ones(1)}),
        "no lora_A or lora_B of one .*lora_C",
    ),
    "shape": (lambda t: t.update({f"{AT}.lora_A.weight": torch.ones(3, 64)}), r"lora_A \[3, 64\] and lora_B \[64, 4\]"),
    "nan": (lambda t: spoil(t, f"{AT}.lora_A.weight"), "holds numbers that are not finite"),
    "type": (lambda t: t.update({f"{AT}.lora_A.weight": torch.ones(4, 64, dtype=torch.int32)}), "of type I32"),
    "empty": (lambda t: t.clear(), "it has no tensors"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_adapters_are_errors_that_name_the_file(base, folder, what):
    change, message = BROKEN[what]
    save_adapter(base, folder, target_modules=["q_proj"])
    weights = folder / "adapter_model.safetensors"
    tensors = load_file(weights)
    change(tensors)
    save_file(tensors, weights)
    with pytest.raises(FormatError, match=message) as caught:
        convert_adapter(folder, base, folder / "o.gguf")
    assert str(folder) in str(caught.value)
    assert not (folder / "o.gguf").exists()


def test_files_that_are_missing_or_damaged(base, folder):
    save_adapter(base, folder, target_modules=["q_proj"])
    weights, config = folder / "adapter_model.safetensors", folder / "adapter_config.json"
    weights.write_bytes(weights.read_bytes()[:-50])
    with pytest.raises(FormatError, match="no sound safetensors file"):
        convert_adapter(folder, base, folder / "o.gguf")
    weights.unlink()
    with pytest.raises(FormatError, match="where are the weights"):
        convert_adapter(folder, base, folder / "o.gguf")
    config.write_text("{")
    with pytest.raises(FormatError, match="is no JSON"):
        convert_adapter(folder, base, folder / "o.gguf")


@pytest.mark.parametrize("changes", [{"lora_alpha": "much"}, {"alpha_pattern": {"(": 1}}, {"alpha_pattern": [1]}])
def test_a_config_that_makes_no_sense(base, folder, changes):
    save_adapter(base, folder, target_modules=["q_proj"])
    edit(folder, **changes)
    with pytest.raises(FormatError, match=next(iter(changes))):
        convert_adapter(folder, base, folder / "o.gguf")


def test_an_adapter_of_another_model(base, folder):
    save_adapter(base, folder, target_modules=["q_proj"])
    weights = folder / "adapter_model.safetensors"
    save_file({name.replace("layers.1", "layers.7"): t for name, t in load_file(weights).items()}, weights)
    with pytest.raises(FormatError, match=r"none of the base model's: model\.layers\.7"):
        convert_adapter(folder, base, folder / "o.gguf")
    with pytest.raises(FormatError, match=r"layers\.7\.self_attn\.q_proj\.weight is none of its tensors"):
        Conversion(base, ConversionChoices(merge_lora=(folder,)))


def test_a_type_that_adapters_do_not_have(base, folder):
    save_adapter(base, folder, target_modules=["q_proj"])
    with pytest.raises(ConfigError, match="written as f32, f16, bf16"):
        convert_adapter(folder, base, folder / "o.gguf", type="q4_k_m")


def test_two_adapters_and_a_scale_for_each_request(base, folder):
    expected = [save_adapter(base, folder / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    for name in ("one", "two"):
        convert_adapter(folder / name, base, folder / f"{name}.gguf", type="f32")
    with loaded(base, adapters=[folder / "one.gguf", (folder / "two.gguf", 0.0)]) as llm:
        assert distance(logits_of(llm), expected[0]) < 1e-4
        assert distance(logits_of(llm, {"two": 1}), expected[1]) < 1e-4
        assert distance(logits_of(llm, []), plain_logits(base)) < 1e-4
    assert len(IDS[0]) == 12
