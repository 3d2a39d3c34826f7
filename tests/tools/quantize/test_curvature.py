"""The curvature of a tensor foretells how far the answers move when its weights do."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.backend import Weight
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from halfbyte.quant import FORMATS
from halfbyte.tools.quantize.curvature import Curvature, measure_curvatures
from tests.model.batches import step
from tests.model.tiny import make_tiny_gguf

V, LENGTH = 300, 24


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    path = make_tiny_gguf(tmp_path_factory.mktemp("curvature") / "m.gguf", "qwen2", n_layers=2)
    return bind(open_gguf(path))


@pytest.fixture(scope="module")
def windows():
    return list(np.random.default_rng(8).integers(0, V, (40, LENGTH)).astype(np.int32))


@pytest.fixture(scope="module")
def curvatures(bound, windows):
    return measure_curvatures(bound.program, bound.weights, windows)


def log_probabilities(bound, weights, windows):
    found = []
    for ids in windows:
        executable = ReferenceExecutable(bound.program, weights, n_pages=4, page_len=8, kv=KvTypes("f32", "f32"))
        logits = np.empty((LENGTH // 2, V), np.float32)
        executable.run(step([(ids, 0, [0, 1, 2])], 8, range(LENGTH // 2, LENGTH)), logits)
        wide = logits.astype(np.float64)
        wide -= wide.max(axis=1, keepdims=True)
        found.append(wide - np.log(np.exp(wide).sum(axis=1, keepdims=True)))
    return np.concatenate(found)


def changed(weight, change):
    values = (weight.decode() + change).astype(np.float32)
    return Weight(weight.name, FORMATS["f32"], values.shape, values.view(np.uint8))


@pytest.mark.parametrize(
    "name",
    ["output.weight", "blk.0.ffn_up.weight", "blk.1.ffn_down.weight", "blk.0.attn_v.weight", "token_embd.weight"],
)
def test_the_divergence_of_small_errors_is_foreseen(bound, windows, curvatures, name):
    weight, (curvature,) = bound.weights[name], curvatures[name]
    rng = np.random.default_rng(9)
    base = log_probabilities(bound, bound.weights, windows)
    seen = []
    for _ in range(4):
        change = rng.normal(0, 1, weight.shape).astype(np.float32)
        rows = np.flatnonzero(curvature.rows)
        # As far as a quadratic holds.
        change *= np.sqrt(1e-3 / curvature.divergence(rows, change[rows] ** 2))
        moved = log_probabilities(bound, {**bound.weights, name: changed(weight, change)}, windows)
        seen.append((np.exp(base) * (base - moved)).sum(axis=1).mean())
    assert np.mean(seen) == pytest.approx(1e-3, rel=0.35)


def test_every_matrix_has_one_and_a_tied_table_two(tmp_path, curvatures, bound, windows):
    matrices = {name for name, weight in bound.weights.items() if weight.shape[0] > 1}
    assert curvatures.keys() == matrices
    assert {len(each) for each in curvatures.values()} == {1}
    tied = bind(open_gguf(make_tiny_gguf(tmp_path / "m.gguf", n_layers=1, tied=True)))
    assert len(measure_curvatures(tied.program, tied.weights, windows[:2])["token_embd.weight"]) == 2


def test_matrices_that_share_a_tensor_are_measured_as_one(tmp_path, windows):
    gguf = open_gguf(make_tiny_gguf(tmp_path / "m.gguf", "phi3", n_layers=1))
    model = bind(gguf)
    found = measure_curvatures(model.program, model.weights, windows[:2])
    matrices = {name: info.rows for name, info in gguf.tensors.items() if len(info.shape) > 1}
    assert {name: len(curvature.rows) for name, (curvature,) in found.items()} == matrices
    assert all((found[f"blk.0.{stem}.weight"][0].rows > 0).all() for stem in ("attn_qkv", "ffn_up"))


def test_rows_of_a_table_that_no_text_had_do_not_count(curvatures, windows):
    (table,) = curvatures["token_embd.weight"]
    used = np.unique(np.concatenate(windows))
    assert set(np.flatnonzero(table.rows)) <= set(used)
    assert (curvatures["output.weight"][0].rows > 0).all()


def test_windows_of_different_lengths_are_read_together(bound, windows):
    some = [windows[0], windows[1][:7], windows[2][:1]]
    found = measure_curvatures(bound.program, bound.weights, some)
    assert all(np.isfinite(c.rows).all() and np.isfinite(c.columns).all() for each in found.values() for c in each)


def test_the_sample_stands_for_all_rows():
    curvature = Curvature(np.array([1.0, 3.0, 6.0]), np.array([0.25, 0.75]))
    errors = np.array([[4.0, 8.0], [4.0, 8.0], [4.0, 8.0]], np.float32)
    whole = curvature.divergence(np.array([0, 1, 2]), errors)
    assert whole == pytest.approx((1 + 3 + 6) * (0.25 * 4 + 0.75 * 8) / 2)
    assert curvature.divergence(np.array([1]), errors[:1]) == pytest.approx(whole)


def test_progress_is_told_of_every_window(bound, windows):
    seen = []
    measure_curvatures(bound.program, bound.weights, windows[:3], lambda *told: seen.append(told))
    assert seen == [("sensitivity", 0, 3), ("sensitivity", 2, 3), ("sensitivity", 3, 3)]
