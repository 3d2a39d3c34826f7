"""Adapter files against a model: what fits, what does not and how that is said, and what is added to what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.formats import Typed, open_gguf
from halfbyte.model.adapt import adapt
from halfbyte.model.adapter import read_adapter
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import AddScaled, Linear
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.model.row_range import row_range
from tests.model.adapters import make_adapter, random_pairs, write_adapter
from tests.model.batches import run_all, step

Q, DOWN = "blk.0.attn_q.weight", "blk.1.ffn_down.weight"
SHAPES = {Q: (64, 64), DOWN: (64, 128)}
IDS = np.arange(20)


@pytest.fixture
def model(bound):
    return bound("llama")


def read(path, model):
    with open_gguf(path) as file:
        return read_adapter(file, "llama", model.program)


def logits(model, *scales):
    runner = ReferenceExecutable(model.program, model.weights, n_pages=4, kv=KvTypes("f32", "f32"))
    batch = step([(IDS, 0, [0, 1])], 16)
    if scales:
        batch = replace(batch, adapter_scales=np.float32([scales]))
    return run_all(runner, [batch], model.program.vocab_size)


def merged(model, path, scale):
    """The model with `scale * B @ A` in its weights."""
    with open_gguf(path) as file:
        values = {
            name: info.format.decode(file.tensor_data(name)).reshape(info.rows, -1)
            for name, info in file.tensors.items()
        }
    weights = dict(model.weights)
    for name in {name[:-7] for name in values}:
        w = weights[name].decode() + scale * values[f"{name}.lora_b"] @ values[f"{name}.lora_a"]
        weights[name] = replace(weights[name], data=w.astype(np.float32).view(np.uint8))
    return replace(model, weights=weights)


@pytest.mark.parametrize(("alpha", "factor"), [(8.0, 2), (2.0, 0.5), (0.0, 1), (None, 1)])
def test_what_is_added_is_alpha_over_rank(model, tmp_path, alpha, factor):
    path = make_adapter(tmp_path / "a.gguf", SHAPES, adapter__lora__alpha=alpha)
    adapted = adapt(model, [read(path, model)])
    for scale in (1.0, -0.5):
        expected = logits(merged(model, path, scale * factor))
        assert np.abs(expected - logits(model)).max() > 0.1
        np.testing.assert_allclose(logits(adapted, scale), expected, atol=2e-4)
    assert np.array_equal(logits(adapted, 0), logits(model))
    assert np.array_equal(logits(adapted), logits(model))


@pytest.mark.parametrize("format", ["f16", "bf16", "q8_0"])
def test_any_format_that_holds_numbers_will_do(model, tmp_path, format):
    path = make_adapter(tmp_path / "a.gguf", SHAPES, rank=32, format=format)
    np.testing.assert_allclose(
        logits(adapt(model, [read(path, model)]), 1), logits(merged(model, path, 0.25)), atol=5e-4
    )


def test_two_adapters_add_up(model, tmp_path):
    one = make_adapter(tmp_path / "1.gguf", SHAPES, rank=3, adapter__lora__alpha=0.0)
    two = make_adapter(tmp_path / "2.gguf", {Q: SHAPES[Q]}, seed=1, adapter__lora__alpha=0.0)
    both = adapt(model, [read(one, model), read(two, model)])
    np.testing.assert_allclose(logits(both, 1, 0.5), logits(merged(merged(model, one, 1), two, 0.5)), atol=2e-4)
    assert np.array_equal(logits(both, 1, 0), logits(adapt(model, [read(one, model)]), 1))


def test_matrices_of_one_tensor_share_the_first_half(tmp_path, bound):
    model = bound("phi3")
    parts = [op.weight for op in model.program.ops if isinstance(op, Linear) and op.weight.startswith("blk.0.attn_qkv")]
    rows = max(row_range(part).stop for part in parts)
    columns = model.weights[parts[0]].shape[1]
    tensors = random_pairs({"blk.0.attn_qkv.weight": (rows, columns)})
    path = write_adapter(tmp_path / "a.gguf", tensors, arch="phi3", adapter__lora__alpha=0.0)
    with open_gguf(path) as file:
        adapter = read_adapter(file, "phi3", model.program)
    adapted = adapt(model, [adapter])
    weights = dict(model.weights)
    for part in parts:
        at = row_range(part)
        delta = tensors["blk.0.attn_qkv.weight.lora_b"][at.start : at.stop] @ tensors["blk.0.attn_qkv.weight.lora_a"]
        w = weights[part].decode() + delta
        weights[part] = replace(weights[part], data=w.astype(np.float32).view(np.uint8))
    np.testing.assert_allclose(logits(adapted, 1), logits(replace(model, weights=weights)), atol=2e-4)
    assert sum(isinstance(op, AddScaled) for op in adapted.program.ops) == 3
    assert sum(name.endswith("lora_a") for name in adapted.weights) == 1


def test_products_of_one_value_stay_side_by_side(model, tmp_path):
    stems = ("attn_q", "attn_k", "attn_v")
    shapes = {f"blk.1.{stem}.weight": model.weights[f"blk.1.{stem}.weight"].shape for stem in stems}
    adapted = adapt(model, [read(make_adapter(tmp_path / "a.gguf", shapes), model)])
    kinds = [type(op) for op in adapted.program.ops]
    first = next(
        i for i, op in enumerate(adapted.program.ops) if isinstance(op, Linear) and op.weight == Q.replace("0", "1")
    )
    assert kinds[first : first + 12] == [Linear] * 9 + [AddScaled] * 3


def test_no_adapter_is_the_model_itself(model):
    assert adapt(model, []) is model


WRONG_METADATA = {
    "a model": ({"general__type": "model"}, FormatError, "general.type is 'model', not 'adapter'"),
    "no type": ({"general__type": None}, FormatError, "general.type is None"),
    "another kind": ({"adapter__type": "control"}, UnsupportedError, "type 'control'; known: lora"),
    "another model": ({"arch": "gemma3"}, FormatError, "an adapter of 'gemma3', and the model is 'llama'"),
    "no number": ({"adapter__lora__alpha": "8"}, FormatError, "alpha is '8', not a finite number"),
    "beyond float32": ({"adapter__lora__alpha": Typed(1e308, "f64")}, FormatError, "alpha is 1e[+]308, not a finite"),
    "not finite": ({"adapter__lora__alpha": float("inf")}, FormatError, "alpha is inf, not a finite"),
    "behind tokens": ({"adapter__alora__invocation_tokens": [1, 2]}, UnsupportedError, "behind an invocation"),
}


@pytest.mark.parametrize("what", WRONG_METADATA)
def test_files_of_another_kind_are_refused(model, tmp_path, what):
    metadata, kind, message = WRONG_METADATA[what]
    path = make_adapter(tmp_path / "a.gguf", SHAPES, **metadata)
    with pytest.raises(kind, match=message) as caught:
        read(path, model)
    assert str(path) in str(caught.value)


def without(name):
    return lambda tensors: tensors.pop(name)


def with_shape(name, *shape):
    return lambda tensors: tensors.update({name: np.ones(shape, np.float32)})


def not_finite(tensors):
    tensors[f"{Q}.lora_b"][3, 2] = np.inf


WRONG_TENSORS = {
    "half": (without(f"{Q}.lora_b"), f"{Q} has no .lora_b"),
    "other half": (without(f"{DOWN}.lora_a"), f"{DOWN} has no .lora_a"),
    "unknown": (with_shape("blk.9.attn_q.weight.lora_a", 4, 64), "blk.9.attn_q.weight is none of the model's tensors"),
    "stray": (with_shape("blk.0.attn_q.weight", 4, 64), "blk.0.attn_q.weight is neither .lora_a nor .lora_b"),
    "transposed": (with_shape(f"{Q}.lora_a", 64, 4), r"attn_q.weight is \[64, 64\], .lora_a is \[64, 4\]"),
    "rank": (with_shape(f"{Q}.lora_a", 5, 64), r".lora_b \[64, 4\], not \[r, 64\] and \[64, r\]"),
    "rows": (with_shape(f"{DOWN}.lora_b", 60, 4), r"ffn_down.weight is \[64, 128\]"),
    "nan": (not_finite, f"{Q}.lora_b holds numbers that are not finite"),
    "nothing": (dict.clear, "it has no tensors"),
}


@pytest.mark.parametrize("what", WRONG_TENSORS)
def test_tensors_that_do_not_fit_are_named(model, tmp_path, what):
    change, message = WRONG_TENSORS[what]
    tensors = random_pairs(SHAPES)
    change(tensors)
    path = write_adapter(tmp_path / "a.gguf", tensors)
    with pytest.raises(FormatError, match=message) as caught:
        read(path, model)
    assert str(path) in str(caught.value)


def test_all_problems_are_told_at_once(model, tmp_path):
    tensors = random_pairs({f"blk.{i}.attn_k.weight": (8, 8) for i in range(3, 20)})
    with pytest.raises(FormatError, match=r"blk\.3\..*blk\.14\..*and 5 more"):
        read(write_adapter(tmp_path / "a.gguf", tensors), model)


@pytest.mark.parametrize(
    ("base", "shape", "what"), [("token_embd", (300, 64), "the embedding"), ("output_norm", (1, 64), "no matrix")]
)
def test_what_nobody_multiplies_by_is_refused_by_name(model, tmp_path, base, shape, what):
    path = make_adapter(tmp_path / "a.gguf", {f"{base}.weight": shape})
    with pytest.raises(UnsupportedError, match=f"changes {base}.weight, which is {what}"):
        read(path, model)


def test_experts_are_refused_by_name(tmp_path, bound):
    model = bound("qwen3moe")
    tensors = {f"blk.0.ffn_up_exps.weight.lora_{half}": np.ones((2, 4, 8), np.float32) for half in "ab"}
    path = write_adapter(tmp_path / "a.gguf", tensors, arch="qwen3moe")
    with open_gguf(path) as file, pytest.raises(UnsupportedError, match=r"ffn_up_exps\.weight, which is experts"):
        read_adapter(file, "qwen3moe", model.program)


def test_a_model_with_one_table_for_both_ends(tmp_path, bound):
    model = bound("llama", tied=True)
    path = make_adapter(tmp_path / "a.gguf", {"output.weight": (300, 64)})
    with pytest.raises(FormatError, match=r"output\.weight is none of the model's tensors"):
        read(path, model)
