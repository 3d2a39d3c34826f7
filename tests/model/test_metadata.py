"""What is missing or wrong in the metadata is named key by key, in one error."""

import numpy as np
import pytest

from halfbyte.errors import FormatError, HalfbyteError, UnsupportedError
from halfbyte.formats import Typed, open_gguf
from halfbyte.model import bind
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import TRAITS

WRONG = {
    "context_length": [None, 0, "long"],
    "embedding_length": [None, 0, 2**31, 64.0],
    "block_count": [None, 0, 513, True],
    "feed_forward_length": [None, 0, [128, 128], [128, 0, 128]],
    "attention.head_count": [None, 0, -1, [4, 4]],
    "attention.head_count_kv": [0, 3, [2, 2, 3], [2, 2]],
    "attention.key_length": [0, 2**20],
    "attention.layer_norm_rms_epsilon": [None, 0.0, -1e-6, float("nan"), float("inf"), "small"],
    "rope.freq_base": [0.0, float("nan"), -10.0],
    "rope.dimension_count": [0, 7, 18],
    "rope.scaling.factor": [-2.0, float("nan")],
    "vocab_size": ["many"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_bad_value_is_named_by_its_key(bound, key, value):
    changes = {f"llama.{key}": value}
    if key == "vocab_size":
        changes["tokenizer.ggml.tokens"] = None
    with pytest.raises(FormatError, match=rf"llama\.{key} "):
        bound(metadata=changes)


@pytest.mark.parametrize(
    ("key", "value"),
    [("sliding_window", -5), ("sliding_window_pattern", -1), ("sliding_window_pattern", [1])],
)
def test_a_bad_window_is_named_by_its_key(bound, key, value):
    with pytest.raises(FormatError, match=rf"gemma3\.attention\.{key} "):
        bound("gemma3", metadata={f"gemma3.attention.{key}": value})


@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf")])
def test_a_bad_softcap_is_named_by_its_key(bound, value):
    with pytest.raises(FormatError, match=r"gemma3\.final_logit_softcapping "):
        bound("gemma3", metadata={"gemma3.final_logit_softcapping": value})


NASTY = [0, -1, 2**31, 2**63, 1e38, float("nan"), "", "x" * 300, True, [1, 2], [0.5] * 3, ["a"], Typed([], "u32")]


@pytest.mark.parametrize("arch", ["llama", "gemma3"])
def test_no_value_of_any_key_gets_past_as_anything_but_a_typed_error(tmp_path, arch):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf", arch))
    keys = [*gguf.metadata, f"{arch}.rope.scaling.type", f"{arch}.rope.scaling.factor", f"{arch}.vocab_size"]
    refused = 0
    for key in keys:
        for value in (*NASTY, np.array([], np.float32), np.array([2, 2, 2**40])):
            gguf.metadata = {**gguf.metadata, key: value.value if isinstance(value, Typed) else value}
            try:
                bind(gguf)
            except HalfbyteError:
                refused += 1
        gguf.metadata = {**gguf.metadata, key: open_gguf(gguf.path).metadata.get(key, 1)}
    assert refused > 100


@pytest.mark.parametrize("arch", TRAITS)
def test_a_key_that_is_missing_is_a_typed_error_or_has_a_usual_value(tmp_path, arch):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf", arch))
    whole, refused = dict(gguf.metadata), []
    for key in whole:
        gguf.metadata = {other: value for other, value in whole.items() if other != key}
        try:
            bind(gguf)
        except HalfbyteError:
            refused.append(key)
    assert f"{arch}.block_count" in refused


@pytest.mark.parametrize(
    ("given", "without", "said"),
    [
        ({"general.type": "adapter"}, False, "this is an adapter: load its model"),
        ({}, True, "no weights to compute with"),
    ],
)
def test_a_sound_file_that_is_no_model_is_said_to_be_what_it_is(tmp_path, given, without, said):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf"))
    gguf.metadata = {**gguf.metadata, **given}
    if without:
        gguf.tensors = {}
    with pytest.raises(FormatError, match=said):
        bind(gguf)


def test_all_problems_come_in_one_error_that_names_the_file(bound):
    changes = {
        "llama.block_count": None,
        "llama.attention.layer_norm_rms_epsilon": float("nan"),
        "llama.rope.freq_base": 0.0,
        "llama.context_length": 0,
    }
    with pytest.raises(FormatError) as caught:
        bound(metadata=changes)
    assert all(key in str(caught.value) for key in changes)
    assert caught.value.path is not None
    assert caught.value.path.endswith("model.gguf")


def test_one_cause_is_one_problem(bound):
    with pytest.raises(FormatError) as caught:
        bound(metadata={"llama.attention.head_count": 0})
    assert str(caught.value).count("llama.") == 1


def test_token_list_and_embedding_must_agree(bound):
    with pytest.raises(FormatError, match=r"tokenizer\.ggml\.tokens counts 3 tokens, but token_embd\.weight has 300"):
        bound(metadata={"tokenizer.ggml.tokens": ["a", "b", "c"]})


def test_vocab_size_counts_where_there_are_no_tokens(bound):
    no_tokens = {"tokenizer.ggml.tokens": None}
    assert bound(metadata=no_tokens).spec.n_vocab == 300
    with pytest.raises(FormatError, match=r"llama\.vocab_size counts 301 tokens"):
        bound(metadata=no_tokens | {"llama.vocab_size": 301})


def test_head_sizes_that_are_absent_come_from_the_width(bound):
    absent = {"llama.attention.key_length": None, "llama.attention.value_length": None}
    spec = bound(metadata=absent).spec
    assert (spec.key_length, spec.value_length) == (16, 16)
    with pytest.raises(FormatError, match="3 heads do not divide 64"):
        bound(metadata=absent | {"llama.attention.head_count": 3, "llama.attention.head_count_kv": 1})


def test_absent_kv_heads_are_as_many_as_heads(bound):
    spec = bound(n_head_kv=4, metadata={"llama.attention.head_count_kv": None}).spec
    assert {layer.n_head_kv for layer in spec.layers} == {4}


def test_a_list_gives_each_layer_its_own(bound):
    given = {"llama.feed_forward_length": Typed(np.array([128] * 3), "u32")}
    assert [layer.n_ff for layer in bound(metadata=given).spec.layers] == [128] * 3


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("general.architecture", "lama", "did you mean 'llama'.*known: .*gemma3, .*llama, .*qwen2"),
        ("llama.attention.causal", False, "encoders"),
        ("llama.rope.scaling.type", "longrope", "known: none, linear, yarn"),
    ],
)
def test_what_we_do_not_do_is_refused_as_such(bound, key, value, said):
    with pytest.raises(UnsupportedError, match=said):
        bound(metadata={key: value})


@pytest.mark.parametrize("value", [None, 7])
def test_a_file_without_an_architecture_is_no_model(bound, value):
    with pytest.raises(FormatError, match=r"general\.architecture"):
        bound(metadata={"general.architecture": value})
