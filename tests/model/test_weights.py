"""Tensors that are missing, of the wrong shape or left over."""

import logging

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError, UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from tests.model.tiny import make_tiny_gguf


def test_weights_are_views_of_the_file(tmp_path):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf", weights="q8_0"))
    weights = bind(gguf).weights
    assert set(weights) == set(gguf.tensors)
    weight = weights["blk.0.ffn_up.weight"]
    assert (weight.shape, weight.format.name) == ((128, 64), "q8_0")
    assert np.shares_memory(weight.data, gguf.tensor_data(weight.name))
    assert not weight.data.flags.writeable
    assert weights["output_norm.weight"].decode().shape == (1, 64)


def test_all_that_is_missing_or_misshapen_is_reported_at_once(bound):
    with pytest.raises(FormatError) as caught:
        bound(
            tensors={"blk.1.ffn_up.weight": None, "output_norm.weight": None, "blk.0.attn_q.weight": np.ones((64, 32))}
        )
    for said in (
        "blk.1.ffn_up.weight is missing",
        "output_norm.weight is missing",
        "attn_q.weight is [32, 64], not [64, 64]",
    ):
        assert said in str(caught.value)


def test_norm_weights_must_be_plain_numbers(bound):
    assert bound(vectors="f16").weights["output_norm.weight"].format.name == "f16"
    with pytest.raises(FormatError, match=r"output_norm\.weight is q8_0, a vector must be one of f32, f16, bf16"):
        bound(vectors="q8_0")


def test_an_embedding_that_is_missing_is_said_to_be(bound):
    with pytest.raises(FormatError, match=r"token_embd\.weight is missing"):
        bound(tensors={"token_embd.weight": None})


def test_a_long_list_is_cut(bound):
    with pytest.raises(FormatError, match="and 15 more"):
        bound(metadata={"llama.block_count": 6})


def test_a_norm_weight_of_two_dimensions_must_still_fit(bound):
    with pytest.raises(FormatError, match=r"output_norm\.weight is \[64, 2\], not \[64\]"):
        bound(tensors={"output_norm.weight": np.ones((2, 64))})


@pytest.mark.parametrize("arch", ["llama", "qwen2", "gemma3"])
def test_a_file_without_a_head_uses_its_embedding(bound, arch):
    model = bound(arch, tied=True)
    assert model.program.weight_names().count("token_embd.weight") == 1
    assert "output.weight" not in model.weights
    assert "output.weight" in bound(arch, tied=False).weights


def test_biases_are_used_where_the_file_has_them(bound):
    stems = ("attn_q", "attn_output", "ffn_down")
    model = bound("llama", biases=stems)
    assert {f"blk.2.{stem}.bias" for stem in stems} <= set(model.program.weight_names())
    assert not any(name.endswith(".bias") for name in bound("llama").program.weight_names())


@pytest.mark.parametrize(
    "name", ["blk.1.attn_q_norm.weight", "blk.0.attn_norm.bias", "output_norm.bias", "blk.2.x.scale"]
)
def test_a_left_over_tensor_that_would_change_the_answer_is_refused(bound, name):
    with pytest.raises(UnsupportedError, match=name.replace(".", r"\.")):
        bound(tensors={name: np.ones(64)})


@pytest.mark.parametrize("name", ["blk.3.attn_q.weight", "v.patch_embd.weight", "blk.0.attn_rot_embd.weight"])
def test_any_other_left_over_tensor_is_only_logged(bound, caplog, name):
    caplog.set_level(logging.INFO, "halfbyte.model")
    assert name not in bound(tensors={name: np.ones(64)}).weights
    assert name in caplog.text


def test_context_is_what_was_asked_for_or_what_was_trained(tmp_path, caplog):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf"))
    assert bind(gguf).context == bind(gguf).spec.context_length == 256
    assert bind(gguf, 17).context == 17
    assert not caplog.text
    assert bind(gguf, 1000).context == 1000
    assert "1000 is more than the 256" in caplog.text
    with pytest.raises(ConfigError, match="at least 1"):
        bind(gguf, 0)
