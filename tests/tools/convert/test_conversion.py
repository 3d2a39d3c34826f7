"""A checkpoint becomes a file that holds all of it, whichever way its weights are stored."""

import gguf
import numpy as np
import pytest
import tokenizers
import torch

from halfbyte import load
from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.text import build_tokenizer
from halfbyte.tools.convert import conversion
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.tools.convert import tiny_llama

PAIRS = {"blk.0.ffn_up.weight": "model.layers.0.mlp.up_proj.weight", "token_embd.weight": "model.embed_tokens.weight"}


def convert(folder, type="f16", threads=1, **choices):
    out = folder / "out.gguf"
    converted = Conversion(folder, ConversionChoices(type, **choices)).write(out, threads=threads)
    return converted, out


def values_of(path):
    with open_gguf(path) as file:
        return {
            name: info.format.decode(file.tensor_data(name)).reshape(info.shape[::-1])
            for name, info in file.tensors.items()
        }


def interleaved(rows, head_size=16):
    """Queries and keys as files have them, spelt out."""
    order = []
    for head in range(len(rows) // head_size):
        for i in range(head_size // 2):
            order += [head * head_size + i, head * head_size + i + head_size // 2]
    return rows[order]


def test_every_tensor_is_in_the_file(tmp_path):
    folder = tiny_llama.save(tmp_path)
    converted, out = convert(folder, "f32")
    originals = tiny_llama.tensors(open_gguf(out).tensors["output.weight"].rows, torch.bfloat16)
    got = values_of(out)
    assert len(got) == len(originals)
    for ours, theirs in PAIRS.items():
        assert np.array_equal(got[ours], originals[theirs].float().numpy())
    for stem in "qk":
        wanted = originals[f"model.layers.1.self_attn.{stem}_proj.weight"].float().numpy()
        assert np.array_equal(got[f"blk.1.attn_{stem}.weight"], interleaved(wanted))
    assert converted.report.lossy == []


def test_another_reader_reads_the_same(tmp_path):
    folder = tiny_llama.save(tmp_path)
    _, out = convert(folder, "bf16")
    reader = gguf.GGUFReader(out)
    ours = values_of(out)
    for tensor in reader.tensors:
        assert np.array_equal(
            gguf.dequantize(tensor.data, tensor.tensor_type).reshape(-1), ours[tensor.name].reshape(-1)
        )
    fields = {name: reader.fields[name].contents() for name in ("general.architecture", "llama.block_count")}
    assert fields == {"general.architecture": "llama", "llama.block_count": 2}
    assert reader.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_BF16


def test_texts_become_the_ids_that_the_original_makes(tmp_path):
    folder = tiny_llama.save(tmp_path)
    _, out = convert(folder, vocab_only=True)
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    with open_gguf(out) as file:
        assert not file.tensors
        ours = build_tokenizer(file.metadata)
    for text in ("Hello, wörld!", "  def f(x):\n\treturn x ** 2", "你好 🙂 1234567"):
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("type", ["f16", "q8_0", "q4_k_m"])
def test_the_file_computes_here_what_it_says_it_does(tmp_path, type):
    _, out = convert(tiny_llama.save(tmp_path), type)
    with load(out, check=True) as llm:
        assert llm.generate("Hello", max_tokens=4, temperature=0).text is not None


@pytest.mark.parametrize("type", ["f16", "q4_0"])
def test_the_bytes_do_not_depend_on_shards_threads_or_kind_of_file(tmp_path, type):
    files = []
    for name, layout in {"one": {}, "shards": {"shards": 3}, "pickle": {"binary": True}}.items():
        folder = tmp_path / name
        folder.mkdir()
        _, out = convert(tiny_llama.save(folder, **layout), type, threads=3 if name == "shards" else 1,
                         metadata={"general.name": "same"})  # fmt: skip
        files.append(out.read_bytes())
    assert files[0] == files[1] == files[2]


def test_parts_hold_the_same_tensors(tmp_path):
    folder = tiny_llama.save(tmp_path)
    _, whole = convert(folder)
    converted = Conversion(folder, ConversionChoices(split_bytes=40_000)).write(tmp_path / "parts.gguf")
    assert len(converted.paths) > 2
    one, parts = values_of(whole), values_of(converted.paths[1])
    assert one.keys() == parts.keys()
    assert all(np.array_equal(one[name], parts[name]) for name in one)
    with load(converted.paths[0], check=True) as llm:
        assert llm.generate("x", max_tokens=1).text is not None


def test_weights_that_no_half_holds_are_kept_in_a_wider_format(tmp_path):
    def enlarge(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][3, 7] = 1e6

    converted, out = convert(tiny_llama.save(tmp_path, change=enlarge))
    with open_gguf(out) as file:
        formats = {name: info.format.name for name, info in file.tensors.items()}
    assert formats["blk.1.ffn_up.weight"] == "bf16"
    assert formats["blk.0.ffn_up.weight"] == "f16"
    assert [tensor.name for tensor in converted.report.widened] == ["blk.1.ffn_up.weight"]


def test_what_a_user_says_stands_over_what_is_found(tmp_path):
    _, out = convert(tiny_llama.save(tmp_path), metadata={"general.name": "Mine", "llama.context_length": 64})
    with open_gguf(out) as file:
        assert file.metadata["general.name"] == "Mine"
        assert file.metadata["llama.context_length"] == 64


def test_settings_of_the_makers_are_kept(tmp_path):
    folder = tiny_llama.save(tmp_path)
    settings = '{"temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": true, "min_p": -1}'
    (folder / "generation_config.json").write_text(settings)
    _, out = convert(folder)
    with open_gguf(out) as file:
        found = {key: value for key, value in file.metadata.items() if key.startswith("general.sampling.")}
    assert found == {
        "general.sampling.temp": pytest.approx(0.6),
        "general.sampling.top_k": 20,
        "general.sampling.top_p": pytest.approx(0.95),
    }


def test_a_head_that_is_the_embedding_is_stored_once(tmp_path):
    def tie(tensors):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()

    _, out = convert(tiny_llama.save(tmp_path, config={"tie_word_embeddings": True}, change=tie))
    with open_gguf(out) as file:
        assert "output.weight" not in file.tensors


MISTAKES = {
    "tied and different": ({"tie_word_embeddings": True}, None, FormatError, "'lm_head.weight' is .* differ"),
    "missing": ({}, lambda t: t.pop("model.norm.weight"), FormatError, "1 tensors are missing: model.norm.weight"),
    "unused": ({}, lambda t: t.update(extra=t["lm_head.weight"].clone()), FormatError, "no place .*: extra"),
    "shape": ({"hidden_size": 32, "head_dim": 16}, None, FormatError, "do not fit"),
    "unknown": ({"architectures": ["NoSuchForCausalLM"]}, None, UnsupportedError, "'NoSuchForCausalLM'; known: "),
    "no class": ({"architectures": []}, None, FormatError, 'no "architectures"'),
    "rope": ({"rope_scaling": {"rope_type": "spiral"}}, None, UnsupportedError, "'spiral'.*; known"),
    "integers": (
        {}, lambda t: t.update({"model.norm.weight": torch.ones(64, dtype=torch.int32)}), FormatError, "of type I32",
    ),
    "not a number": (
        {}, lambda t: t["model.layers.1.mlp.up_proj.weight"].__setitem__((3, 7), torch.nan), FormatError,
        r"up_proj.weight' has nan in row 3, column 7",
    ),
    "heads": ({"num_attention_heads": 7}, None, FormatError, "num_attention_heads is 7"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_checkpoint_that_makes_no_sense_leaves_nothing(tmp_path, mistake):
    config, change, error, text = MISTAKES[mistake]
    folder = tiny_llama.save(tmp_path, config=config, change=change)
    before = sorted(folder.iterdir())
    with pytest.raises(error, match=text) as caught:
        convert(folder)
    assert str(folder) in str(caught.value)
    assert sorted(folder.iterdir()) == before


def test_a_recipe_that_does_not_exist(tmp_path):
    with pytest.raises(UnsupportedError, match="did you mean 'q4_k_s'"):
        convert(tiny_llama.save(tmp_path), "q4_k_x")


def test_no_kernel_is_compiled_for_weights_that_stay_floats(tmp_path, monkeypatch):
    def refuse(progress):
        raise AssertionError("a search was made ready")

    monkeypatch.setattr(conversion, "CompiledSearch", refuse)
    folder = tiny_llama.save(tmp_path)
    convert(folder, "bf16")
    with pytest.raises(AssertionError, match="a search"):
        convert(folder, "q8_0")
