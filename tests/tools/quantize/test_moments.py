"""Second moments of what matrices multiply, in as many passes as memory asks for."""

import numpy as np
import pytest

from halfbyte.tools.quantize.moments import group, moments
from tests.model.tiny import make_tiny_gguf
from tests.tools.quantize.calibrated import opened, rows_of, windows_for

PLENTY = 1 << 30


@pytest.fixture
def model(tmp_path):
    with opened(make_tiny_gguf(tmp_path / "m.gguf")) as made:
        yield made


def test_a_moment_is_the_product_of_all_rows_with_themselves(model):
    windows = windows_for(model)
    found = {moment.value: moment for moment in moments(model, windows, budget_bytes=PLENTY)}
    assert list(found) == model.program.taps()
    for value in ("blk.0.attn_norm", "blk.2.ffn_gated"):
        rows = rows_of(model, windows, value)
        total = found[value].total
        assert found[value].rows == len(rows)
        np.testing.assert_allclose(total, rows.T @ rows, rtol=1e-4, atol=1e-4 * np.abs(total).max())
        assert np.array_equal(total, total.T)


def test_a_moment_of_several_slabs_is_whole_and_symmetric(model, monkeypatch):
    windows = windows_for(model)
    at_once = {moment.value: moment.total for moment in moments(model, windows, budget_bytes=PLENTY)}
    monkeypatch.setattr("halfbyte.tools.quantize.moments._SLAB", 24)
    for moment in moments(model, windows, budget_bytes=PLENTY):
        assert np.array_equal(moment.total, moment.total.T)
        np.testing.assert_allclose(
            moment.total, at_once[moment.value], rtol=1e-4, atol=1e-5 * np.abs(moment.total).max()
        )


def test_matrices_of_one_input_share_a_moment(model):
    readers = {moment.value: moment.weights for moment in moments(model, windows_for(model), budget_bytes=PLENTY)}
    assert readers["blk.1.attn_norm"] == tuple(f"blk.1.attn_{part}.weight" for part in "qkv")
    assert len(readers) == 4 * 3
    assert sum(map(len, readers.values())) == 7 * 3


def test_passes_change_nothing_but_their_number(model):
    windows = windows_for(model, most=2)
    told = []
    whole = list(moments(model, windows, budget_bytes=PLENTY))
    apart = list(moments(model, windows, budget_bytes=1, progress=lambda *news: told.append(news[1:])))
    assert [moment.value for moment in apart] == [moment.value for moment in whole]
    assert all(np.array_equal(a.total, b.total) for a, b in zip(apart, whole, strict=True))
    assert told == [(done, 24) for done in range(25)]


def test_only_what_is_wanted_is_summed_up(model):
    values = ["blk.2.attn", "blk.0.ffn_norm"]
    found = moments(model, windows_for(model, most=1), budget_bytes=PLENTY, values=values)
    assert [moment.value for moment in found] == ["blk.0.ffn_norm", "blk.2.attn"]


def test_groups_keep_the_budget_with_room_for_the_product():
    widths = {"a": 10, "b": 10, "c": 20, "d": 10}
    assert group(list("abd"), widths, 1600) == [["a", "b", "d"]]
    assert group(list("abd"), widths, 1599) == [["a", "b"], ["d"]]
    assert group(list("abcd"), widths, 3600) == [["a", "b"], ["c", "d"]]
    assert group(list("abcd"), widths, 0) == [["a"], ["b"], ["c"], ["d"]]
    assert group([], widths, 100) == []
