"""`halfbyte check` in every outcome it has."""

from __future__ import annotations

import pytest

from halfbyte.formats import open_gguf
from halfbyte.quant import FORMATS
from halfbyte.quant.search import NUMPY
from halfbyte.tools.quantize import quantizer
from tests.model.tiny import tiny_model
from tests.runtime.golden.files import changed, golden_gguf

pytestmark = pytest.mark.usefixtures("no_kernels")


@pytest.fixture
def golden(tmp_path):
    return golden_gguf(tmp_path / "golden.gguf", weights="q8_0")


def test_a_sound_file_has_a_line_for_every_item_and_passes(run, golden) -> None:
    shown = run("check", str(golden))
    lines = shown.out.splitlines()
    assert (shown.code, shown.err) == (0, "")
    assert [line.partition("  ")[0].strip() for line in lines[:-1]] == ["ok"] * 24
    assert lines[0].endswith(" tensors: as they were written")
    assert lines[1] == "ok      ids of 'Hello, world!': 13 tokens"
    assert lines[-2].startswith("ok      logits behind token 12 of 12: likeliest is ")
    assert lines[-1] == "all 24 passed"


def test_what_failed_is_shown_with_what_it_may_mean(run, golden, tmp_path) -> None:
    with open_gguf(golden) as file:
        data = file.tensor_data("blk.0.attn_q.weight").copy()
    data[0] ^= 255
    shown = run("check", str(changed(golden, tmp_path / "damaged.gguf", data={"blk.0.attn_q.weight": data})))
    assert shown.code == 1
    assert ": 1 are not as they were written: blk.0.attn_q.weight\n" in shown.out
    assert "FAILED  logits behind token" in shown.out
    assert "\nmaybe: the file is damaged" in shown.out


def test_a_file_without_vectors_is_compared_with_the_reference_and_says_so(run, tmp_path) -> None:
    shown = run("check", str(tiny_model(tmp_path)))
    assert shown.code == 0
    assert "no golden vectors of its own" in shown.err
    assert shown.out.endswith("all 23 passed\n")


def test_copied_vectors_are_not_believed(run, golden, tmp_path) -> None:
    shown = run("check", str(changed(golden, tmp_path / "new.gguf", formats=FORMATS["q4_0"])))
    assert shown.code == 0
    assert "another program copied them" in shown.err


def test_as_json(run, golden) -> None:
    found = run("check", str(golden), "--json").json
    assert found["ok"] is found["recorded"] is True
    assert found["causes"] == []
    assert found["items"][0].keys() == {"part", "item", "ok", "note"}


def test_what_is_quantized_has_vectors_of_its_own(run, golden, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(quantizer, "CompiledSearch", lambda progress: NUMPY)
    small = tmp_path / "small.gguf"
    assert run("quantize", str(golden), str(small), "q4_0", "--allow-requantize").code == 0
    shown = run("check", str(small))
    assert (shown.code, shown.err) == (0, "")
    with open_gguf(golden) as old, open_gguf(small) as new:
        for key in ("sample", "tensors"):
            assert old.metadata[f"halfbyte.check.{key}"].tolist() != new.metadata[f"halfbyte.check.{key}"].tolist()
