"""A mixture of experts is measured expert by expert and quantized like any other model."""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.taps import routes_of
from halfbyte.quant.recipes import recipe_named
from halfbyte.quant.search import NUMPY
from halfbyte.quant.walk import NUMPY_WALK
from halfbyte.tools.quantize import quantizer
from halfbyte.tools.quantize.calibration import read_window
from halfbyte.tools.quantize.choices import Choices
from halfbyte.tools.quantize.curvature import Curvature
from halfbyte.tools.quantize.imatrix_collect import collect
from halfbyte.tools.quantize.imatrix_file import read_imatrix, write_imatrix
from halfbyte.tools.quantize.moments import moments
from halfbyte.tools.quantize.quantizer import Quantizer
from halfbyte.tools.quantize.sensitivity import sensitivities
from halfbyte.tools.quantize.target import Target
from tests.model.tiny import make_tiny_gguf
from tests.tools.quantize.calibrated import TEXT, opened, windows_for

DOWN, GATE = "blk.1.ffn_down_exps.weight", "blk.1.ffn_gate_exps.weight"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return make_tiny_gguf(tmp_path_factory.mktemp("experts") / "m.gguf", "qwen3moe", n_layers=2)


@pytest.fixture(autouse=True)
def numpy_search(monkeypatch):
    monkeypatch.setattr(quantizer, "CompiledSearch", lambda progress: NUMPY)
    monkeypatch.setattr(quantizer, "CompiledWalk", lambda progress: NUMPY_WALK)


def rows_by_expert(model, windows, value):
    """f64[rows, M] of each expert over all windows."""
    route, experts = routes_of(model.program)[value]
    found = [[] for _ in range(experts)]
    for ids in windows:
        read_window(model, ids)
        numbers = model.tapped(route)
        owners = np.sort(numbers[:, : numbers.shape[1] // 2].astype(int).reshape(-1))
        for expert, row in zip(owners, model.tapped(value).astype(np.float64), strict=True):
            found[expert].append(row)
    return found


def test_each_expert_has_the_sums_and_the_count_of_its_own_tokens(path, tmp_path):
    with opened(path) as model:
        windows = windows_for(model)
        matrix = collect(model, windows)
        value = next(op.x for op in model.program.ops if DOWN in op.weights())
        rows = rows_by_expert(model, windows, value)
        used = model.program.widths[routes_of(model.program)[value][0]] // 2
    entry = matrix.entries[DOWN]
    assert entry.counts.tolist() == [len(own) for own in rows]
    assert entry.counts.sum() == used * sum(map(len, windows))
    for sums, own in zip(entry.in_sum2, rows, strict=True):
        np.testing.assert_allclose(sums, np.sum(np.square(own), axis=0), rtol=1e-6)
    assert np.array_equal(matrix.entries[GATE].counts, entry.counts)
    write_imatrix(matrix, tmp_path / "i.gguf")
    assert np.array_equal(read_imatrix(tmp_path / "i.gguf").entries[DOWN].in_sum2, entry.in_sum2)


def test_the_moment_of_experts_is_that_of_all_their_rows(path):
    with opened(path, weights=[DOWN]) as model:
        windows = windows_for(model)
        (moment,) = moments(model, windows, budget_bytes=1 << 20)
        rows = np.array([row for own in rows_by_expert(model, windows, moment.value) for row in own])
    assert (moment.weights, moment.rows) == ((DOWN,), len(rows))
    np.testing.assert_allclose(moment.total, rows.T @ rows, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_mixture_is_quantized_with_importance_or_with_feedback(path, tmp_path, calibrated):
    with opened(path) as model:
        matrix = collect(model, windows_for(model))
    with open_gguf(path) as file:
        texts = (TEXT,) if calibrated else ()
        work = Quantizer(file, matrix=matrix, texts=texts, most_windows=2, backend="reference")
        plan, _ = work.plan(Choices(recipe_named("q8_0")))
        work.write(plan, tmp_path / "q.gguf")
        before = bind(file).weights[DOWN].decode()
        with open_gguf(tmp_path / "q.gguf") as made:
            after = bind(made).weights[DOWN]
            assert after.format.name == "q8_0"
            assert np.abs(after.decode() - before).max() < 0.02 * np.abs(before).max()


def test_a_size_is_met_by_formats_for_experts_too(path):
    with open_gguf(path) as file:
        work = Quantizer(file, texts=(TEXT,), most_windows=2, backend="reference")
        plan, _ = work.plan(Choices(recipe_named("q4_k_m")), Target(bits_per_weight=6))
    assert 5.5 < plan.bits_per_weight <= 6
    assert next(tensor for tensor in plan.tensors if tensor.name == DOWN).changes


def test_trying_formats_asks_for_each_experts_own_importance(path):
    asked = {}

    class Encoder:
        def encode(self, tensor, expert, rows):
            asked.setdefault((tensor.name, tensor.target.name), []).append((expert, len(rows)))
            return tensor.target.encode(rows)

    with open_gguf(path) as file:
        info = file.tensors[DOWN]
        rows = info.rows // 6
        sensitivities(file, {DOWN: (Curvature(np.ones(info.rows), np.ones(info.columns)),)}, [DOWN], Encoder())
    assert asked[DOWN, "q8_0"] == [(expert, rows) for expert in range(6)]
