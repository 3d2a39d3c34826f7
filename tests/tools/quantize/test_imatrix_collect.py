"""Importance from a model that reads: sums of squares of exactly what each matrix multiplies."""

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.model.taps import linear_inputs
from halfbyte.tools.quantize.imatrix_collect import collect, column_energy
from tests.model.tiny import make_tiny_gguf
from tests.tools.quantize.calibrated import WINDOW, opened, rows_of, windows_for


@pytest.mark.parametrize("arch", ["llama", "gemma3", "phi3"])
def test_sums_are_of_the_squares_of_every_token(tmp_path, arch):
    with opened(make_tiny_gguf(tmp_path / "m.gguf", arch)) as model:
        windows = windows_for(model)
        matrix = collect(model, windows)
        tokens = sum(map(len, windows))
        assert (matrix.chunk_count, matrix.chunk_size) == (len(windows), WINDOW)
        assert len(matrix.entries) == (4 if arch == "phi3" else 7) * 3
        query = "blk.0.attn_qkv.weight" if arch == "phi3" else "blk.0.attn_q.weight"
        for name in (query, "blk.1.attn_output.weight", "blk.2.ffn_up.weight", "blk.2.ffn_down.weight"):
            rows = rows_of(model, windows, linear_inputs(model.program)[name])
            assert len(rows) == tokens
            np.testing.assert_allclose(matrix.entries[name].in_sum2[0], (rows**2).sum(axis=0), rtol=1e-6)
            assert matrix.entries[name].counts.tolist() == [tokens]


def test_matrices_of_one_input_have_one_importance(tmp_path):
    with opened(make_tiny_gguf(tmp_path / "m.gguf")) as model:
        entries = collect(model, windows_for(model, most=1)).entries
    assert np.array_equal(entries["blk.1.attn_q.weight"].in_sum2, entries["blk.1.attn_v.weight"].in_sum2)
    assert not np.array_equal(entries["blk.1.attn_q.weight"].in_sum2, entries["blk.1.ffn_up.weight"].in_sum2)


@pytest.mark.parametrize(("tied", "head"), [(False, "output.weight"), (True, "token_embd.weight")])
def test_the_head_is_measured_where_asked_for_over_every_token(tmp_path, tied, head):
    path = make_tiny_gguf(tmp_path / "m.gguf", tied=tied)
    with opened(path) as model:
        without = collect(model, windows_for(model)).entries
    with opened(path, with_head=True) as model:
        windows = windows_for(model)
        entries = collect(model, windows).entries
        rows = rows_of(model, windows, "output_norm")
    assert entries.keys() - without.keys() == {head}
    np.testing.assert_allclose(entries[head].in_sum2[0], (rows**2).sum(axis=0), rtol=1e-6)
    assert all(np.array_equal(entry.in_sum2, entries[name].in_sum2) for name, entry in without.items())


def test_a_text_in_two_halves_merges_to_the_whole(tmp_path):
    with opened(make_tiny_gguf(tmp_path / "m.gguf")) as model:
        windows = windows_for(model)
        whole = collect(model, windows)
        merged = collect(model, windows[:2], datasets=["a"]).merge(collect(model, windows[2:], datasets=["b"]))
    assert (merged.chunk_count, merged.chunk_size, merged.datasets) == (len(windows), WINDOW, ("a", "b"))
    for name, entry in whole.entries.items():
        np.testing.assert_allclose(merged.entries[name].in_sum2, entry.in_sum2, rtol=1e-6)
        assert merged.entries[name].counts == entry.counts


def test_progress_counts_windows(tmp_path):
    told = []
    with opened(make_tiny_gguf(tmp_path / "m.gguf")) as model:
        collect(model, windows_for(model, most=2), progress=lambda *news: told.append(news))
    assert told == [("calibrate", 0, 2), ("calibrate", 1, 2), ("calibrate", 2, 2)]


def test_a_model_with_nan_is_refused_by_name(tmp_path):
    weight = np.zeros((64, 128), np.float32)
    weight[3, 5] = np.nan
    with (
        opened(make_tiny_gguf(tmp_path / "m.gguf", tensors={"blk.1.ffn_down.weight": weight})) as model,
        pytest.raises(FormatError, match=r"m\.gguf: what 'blk\.2\.attn_q\.weight' multiplies is no number in window 0"),
    ):
        collect(model, windows_for(model))


def test_a_window_longer_than_the_context_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="257 is more than the 256 tokens"):
        opened(make_tiny_gguf(tmp_path / "m.gguf"), window=257)


def test_a_weight_that_is_no_matrix_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"'output_norm\.weight' is no matrix"):
        opened(make_tiny_gguf(tmp_path / "m.gguf"), weights=["output_norm.weight"])


def test_energy_is_exact_however_many_rows():
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((517, 9)) * [1, 1e-3, 1e3, 1, 1, 1, 1, 1, 0]).astype(np.float32)
    x[0, 3] = 3e3  # one token far above the others, as the first one often is
    np.testing.assert_allclose(column_energy(x), (x.astype(np.float64) ** 2).sum(axis=0), rtol=1e-6)
    assert column_energy(x[:0]).tolist() == [0] * 9
