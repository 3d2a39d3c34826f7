"""Whatever is wrong with the files of a checkpoint or its config: a typed error names the file, and nothing is left."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError, UnsupportedError
from halfbyte.tools.convert.conversion import Conversion
from tests.tools.convert.broken import INDEX, WEIGHTS, outcome, refused, sharded, with_config, with_tensors
from tests.tools.convert.tiny_folder import config, tensors

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def test_a_whole_checkpoint_is_converted(folder, tmp_path):
    written = Conversion(folder).write(tmp_path / "m.gguf")
    assert written.paths == (tmp_path / "m.gguf",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "m.gguf"]


def test_a_split_file_that_fails_leaves_no_part(folder):
    weights = tensors()["lm_head.weight"]
    weights[-1, -1] = np.nan
    refused(with_tensors(folder, {"lm_head.weight": weights}), FormatError, r"lm_head.*nan", split_bytes=50_000)


def test_a_checkpoint_in_shards_is_converted(folder, tmp_path):
    sharded(folder)
    assert Conversion(folder).write(tmp_path / "m.gguf").paths == (tmp_path / "m.gguf",)


class TestFolder:
    def test_that_is_not_there(self, tmp_path):
        refused(tmp_path / "nothing", ConfigError, "nothing.*does not exist")

    def test_that_is_a_file(self, folder):
        with pytest.raises(ConfigError, match=r"config\.json.*is a file"):
            Conversion(folder / "config.json")

    def test_that_is_empty(self, tmp_path):
        (tmp_path / "empty").mkdir()
        refused(tmp_path / "empty", FormatError, r"config\.json.*missing")

    @pytest.mark.parametrize("name", ["", "config.json", WEIGHTS, "tokenizer.json", "generation_config.json"])
    def test_with_links_that_go_in_circles(self, folder, name):
        target = folder / name if name else folder.parent / "loop"
        target.unlink(missing_ok=True)
        target.symlink_to(target)
        refused(folder if name else target, (FormatError if name else ConfigError), target.name)

    @pytest.mark.parametrize("name", ["config.json", WEIGHTS, INDEX, "tokenizer.json", "generation_config.json"])
    def test_with_folders_for_files(self, folder, name):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
        refused(folder, FormatError, name)

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden to this user")
    @pytest.mark.parametrize("name", ["config.json", WEIGHTS, "tokenizer.json"])
    def test_with_files_that_may_not_be_read(self, folder, name):
        (folder / name).chmod(0)
        refused(folder, FormatError, name)

    def test_with_other_files_only(self, folder):
        (folder / WEIGHTS).rename(folder / "model.gguf")
        refused(folder, UnsupportedError, "checkpoint.*GGUF")

    def test_without_weights(self, folder):
        (folder / WEIGHTS).unlink()
        refused(folder, FormatError, "checkpoint.*where are the weights")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe{", b"[" * 100_000, b'{"a": 1}{"b": 2}', b"\0" * 64, b"1" * 10_000],
)
@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
def test_json_that_is_none_or_holds_no_object(folder, name, text):
    (folder / name).write_bytes(text)
    refused(folder, FormatError, name)


class TestConfig:
    @pytest.mark.parametrize("names", [None, [], "LlamaForCausalLM", [7], {}])
    def test_that_names_no_architecture(self, folder, names):
        refused(with_config(folder, architectures=names), FormatError, r"config\.json.*architectures")

    def test_that_names_an_unknown_one(self, folder):
        refused(with_config(folder, architectures=["FooForBar"]), UnsupportedError, r"config\.json.*'FooForBar'.*known")

    @pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"])
    @pytest.mark.parametrize("value", [None, -1, 0, 2.5, "64", [64], True, 10**400, float("nan"), float("inf"), 1e308])
    def test_with_sizes_that_make_no_sense(self, folder, key, value):
        refused(with_config(folder, **{key: value}), FormatError, rf"config\.json.*{key}")

    @pytest.mark.parametrize("key", ["rms_norm_eps", "rope_theta"])
    @pytest.mark.parametrize("value", [-1, 0, "1e-5", float("nan"), float("inf"), 10**400, [1e-5]])
    def test_with_numbers_that_make_no_sense(self, folder, key, value):
        refused(with_config(folder, **{key: value}), FormatError, rf"config\.json.*{key}")

    @pytest.mark.parametrize(
        ("key", "value", "kind"),
        [
            ("rope_scaling", {"rope_type": "unheard of"}, UnsupportedError),
            ("rope_scaling", {"rope_type": "linear"}, FormatError),
            ("rope_scaling", 7, FormatError),
            ("num_attention_heads", 5, FormatError),
            ("vocab_size", 2**31 - 1, FormatError),
            ("head_dim", 2**31 - 1, FormatError),
            ("rope_scaling", LLAMA3 | {"factor": 10**400}, FormatError),
            ("rope_scaling", {"rope_type": "longrope", "long_factor": [10**400] * 8}, FormatError),
            ("num_key_value_heads", 3, FormatError),
            ("hidden_act", "unheard of", UnsupportedError),
            ("hidden_act", "gelu", UnsupportedError),
            ("hidden_act", 7, FormatError),
            ("tie_word_embeddings", "yes", FormatError),
            ("quantization_config", {"quant_method": "bitsandbytes"}, UnsupportedError),
            ("quantization_config", "int8", FormatError),
        ],
    )
    def test_with_other_settings_that_make_no_sense(self, folder, key, value, kind):
        refused(with_config(folder, **{key: value}), kind, r"config\.json")

    def test_that_asks_for_more_than_there_is_memory(self, folder):
        refused(with_config(folder, head_dim=2**31 - 1, rope_scaling=LLAMA3), FormatError, r"config\.json.*head_dim")

    @pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "intermediate_size", "num_key_value_heads"])
    def test_that_does_not_fit_the_tensors(self, folder, key):
        refused(with_config(folder, **{key: config()[key] * 2}), FormatError, r"checkpoint")


@pytest.mark.parametrize("value", ["x", [True], 1.5, {"a": 1}, -5, 10**30, [[1]]])
def test_a_generation_config_that_makes_no_sense_is_an_error_or_nothing(folder, value, tmp_path):
    tree = {"eos_token_id": value, "temperature": value, "top_k": value, "top_p": value}
    (folder / "generation_config.json").write_text(json.dumps(tree))
    error = outcome(folder, tmp_path / "m.gguf")
    assert error is None or "generation_config.json" in str(error)
    assert (error is None) == (tmp_path / "m.gguf").exists()


@pytest.mark.parametrize(("name", "size"), [(WEIGHTS, 2000), ("config.json", 500)])
def test_any_byte_of_a_header_or_a_config_may_be_wrong(folder, name, size):
    """Whatever it makes of them, nothing but an error of ours comes out, and it says where."""
    rng = np.random.default_rng(0)
    whole = (folder / name).read_bytes()
    errors = []
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(0, min(size, len(whole)), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        (folder / name).write_bytes(damaged)
        errors.append(outcome(folder))
    assert any(isinstance(error, FormatError) for error in errors)
    assert all(str(folder) in str(error) for error in errors if error is not None)
