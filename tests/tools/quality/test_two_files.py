"""What two files hold and how far their tensors are from each other."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.formats import GGUFWriter, open_gguf
from halfbyte.quant import FORMATS
from halfbyte.tools.quality import tensor_error as tensor_error_module
from halfbyte.tools.quality.differences import differences
from halfbyte.tools.quality.inventory import take_inventory
from halfbyte.tools.quality.tensor_error import tensor_errors
from tests.model.tiny import make_tiny_gguf


def write(path, tensors, metadata=None):
    """`tensors`: name to (format, values)."""
    with GGUFWriter(path, {"general.architecture": "odd"} | (metadata or {})) as writer:
        for name, (kind, values) in tensors.items():
            writer.declare(name, FORMATS[kind], values.shape[::-1])
        for name, (kind, values) in tensors.items():
            writer.write(name, FORMATS[kind].encode(values.astype(np.float32)))
    return path


def errors(a, b, **choices):
    with open_gguf(a) as one, open_gguf(b) as other:
        return list(tensor_errors(one, other, **choices))


@pytest.fixture
def values():
    return np.random.default_rng(3).normal(0, 1, (50, 64)).astype(np.float32)


@pytest.mark.parametrize("piece", [1, 64 * 7, 1 << 20])
def test_an_error_is_the_lost_share_of_the_energy_in_any_pieces(tmp_path, values, piece, monkeypatch):
    monkeypatch.setattr(tensor_error_module, "PIECE", piece)
    a = write(tmp_path / "a.gguf", {"w": ("f32", values)})
    b = write(tmp_path / "b.gguf", {"w": ("q4_0", values)})
    (found,) = errors(a, b)
    decoded = FORMATS["q4_0"].decode(FORMATS["q4_0"].encode(values))
    assert (found.name, found.format_a, found.format_b) == ("w", "f32", "q4_0")
    assert found.error == pytest.approx(((decoded - values) ** 2).sum() / (values**2).sum(), rel=1e-5)
    assert 1e-3 < found.error < 1e-1


def test_only_tensors_of_both_files_and_the_same_shape_are_compared(tmp_path, values):
    a = write(tmp_path / "a.gguf", {"x": ("f32", values), "same": ("f32", values), "odd": ("f32", values)})
    b = write(tmp_path / "b.gguf", {"y": ("f32", values), "odd": ("f32", values[:7]), "same": ("f32", values)})
    told = []
    found = errors(a, b, progress=lambda *words: told.append(words))
    assert [(each.name, each.error) for each in found] == [("same", 0.0)]
    assert told == [("compare", 0, 1)]
    with open_gguf(a) as one, open_gguf(b) as other:
        assert differences(one, other) == [
            "tensors only in A: x",
            "tensors only in B: y",
            "tensors of other shapes: odd",
        ]


@pytest.mark.parametrize(
    ("before", "after", "error"), [(0.0, 0.0, 0.0), (0.0, 1.0, None), (1.0, np.nan, None), (np.inf, 1.0, None)]
)
def test_an_error_that_cannot_be_said_is_none(tmp_path, before, after, error):
    paths = [
        write(tmp_path / f"{name}.gguf", {"w": ("f32", np.full((2, 4), value))})
        for name, value in (("a", before), ("b", after))
    ]
    assert [each.error for each in errors(*paths)] == [error]


def test_an_inventory_counts_everything(tmp_path, values):
    tensors = {"a": ("q8_0", values), "b": ("f32", values[0]), "c": ("q8_0", values[:10])}
    path = write(tmp_path / "a.gguf", tensors, {"odd.context_length": 77})
    with open_gguf(path) as file:
        found = take_inventory(file)
    assert list(found.formats) == ["q8_0", "f32"]
    share = found.formats["q8_0"]
    assert (share.tensors, share.weights, share.bytes) == (2, 3840, 3840 // 32 * 34)
    assert (found.total.tensors, found.total.weights, found.total.bytes) == (3, 3904, share.bytes + 256)
    assert found.bits_per_weight == pytest.approx(8 * (share.bytes + 256) / 3904)
    assert found.file_bytes == path.stat().st_size
    assert (found.architecture, found.context_length, found.vocabulary) == ("odd", 77, None)


def test_a_file_without_tensors_has_no_bits_per_weight(tmp_path):
    with open_gguf(write(tmp_path / "a.gguf", {})) as file:
        assert take_inventory(file).bits_per_weight == 0.0


def test_what_matters_in_the_metadata_is_told(tmp_path):
    a = make_tiny_gguf(tmp_path / "a.gguf", "llama")
    b = make_tiny_gguf(tmp_path / "b.gguf", "qwen2", n_vocab=310, metadata={"qwen2.context_length": 99})
    with open_gguf(a) as one, open_gguf(b) as other:
        found = differences(one, other)
        assert differences(one, one) == []
    assert found[:3] == [
        "architecture: llama and qwen2",
        "context length: 256 and 99 tokens",
        "vocabulary: 300 and 310 tokens",
    ]
    assert found[3] == "tensors only in B: blk.0.attn_q.bias, blk.0.attn_k.bias, blk.0.attn_v.bias and 6 more"
