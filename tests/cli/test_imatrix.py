"""`halfbyte imatrix` as it is typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfbyte.runtime.bare import BareModel
from halfbyte.tools.quantize.imatrix_file import read_imatrix
from tests.model.tiny import make_tiny_gguf

TEXT = "the thing and then another one: " * 8


pytestmark = pytest.mark.usefixtures("no_kernels")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "model.gguf", weights="q8_0"))


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return str(tmp_path / "text.txt")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "imatrix.gguf"


def test_a_file_comes_out_and_says_what_was_read(run, model: str, text: str, out: Path) -> None:
    done = run("imatrix", model, "--file", text, "-o", str(out), "--window", "32")
    assert done.code == 0
    found = read_imatrix(out)
    assert found.datasets == ("text.txt",)
    assert found.chunk_count > 1
    assert found.chunk_size == 32
    assert "output.weight" not in found
    assert done.out == f"{out}: 21 matrices, {found.chunk_count} windows of 32 tokens\n"
    assert done.err.startswith(f"{32 * found.chunk_count} tokens read, ")


def test_several_texts_and_only_the_first_windows(run, model: str, text: str, out: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("short", encoding="utf-8")
    words = ("imatrix", model, "--file", str(tmp_path / "more.txt"), "--file", text, "-o", str(out), "--window", "32")
    assert run(*words, "--chunks", "2").code == 0
    found = read_imatrix(out)
    assert (found.datasets, found.chunk_count) == (("more.txt", "text.txt"), 2)
    assert 32 < found.entries["blk.0.attn_q.weight"].counts[0] < 64


def test_the_head_where_asked_for(run, model: str, text: str, out: Path) -> None:
    assert run("imatrix", model, "--file", text, "-o", str(out), "--window", "32", "--process-output").code == 0
    assert "output.weight" in read_imatrix(out)


def test_an_earlier_matrix_is_added(run, model: str, text: str, out: Path) -> None:
    once = ("imatrix", model, "--file", text, "-o", str(out), "--window", "32")
    assert run(*once).code == 0
    first = read_imatrix(out)
    assert run(*once, "--in", str(out)).code == 0
    second = read_imatrix(out)
    assert second.chunk_count == 2 * first.chunk_count
    name = "blk.1.ffn_down.weight"
    assert np.array_equal(second.entries[name].in_sum2, 2 * first.entries[name].in_sum2)
    assert np.array_equal(second.importance(name), first.importance(name))


@pytest.mark.parametrize(
    ("content", "hint"),
    [(b"", "the text is empty"), (b"good \xff bad", "is no UTF-8 text: convert it first (at byte 5)")],
)
def test_a_text_that_is_none_is_refused(run, model: str, out: Path, tmp_path: Path, content: bytes, hint: str) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    done = run("imatrix", model, "--file", str(tmp_path / "text.txt"), "-o", str(out))
    assert (done.code, done.out) == (1, "")
    assert hint in done.err
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("missing", ["--file", "--out"])
def test_what_is_missing_is_named(run, model: str, text: str, out: Path, missing: str) -> None:
    words = {"--file": ["-o", str(out)], "--out": ["--file", text]}[missing]
    done = run("imatrix", model, *words)
    assert done.code == 2
    assert f"{missing} missing; for example: halfbyte imatrix" in done.err


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(run, text: str, out: Path) -> None:
    done = run("imatrix", "no-such-model.gguf", "--file", text, "-o", str(out.parent / "no" / "i.gguf"))
    assert (done.code, done.err.count("there is no folder")) == (1, 1)
    done = run("imatrix", "no-such-model.gguf", "--file", text, "-o", str(out.parent))
    assert (done.code, done.err.count("is a folder: name a file in it")) == (1, 1)


def test_ctrl_c_leaves_nothing(run, model: str, text: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(model: BareModel, name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BareModel, "tapped", interrupted)
    assert run("imatrix", model, "--file", text, "-o", str(out), "--window", "32").code == 130
    assert list(out.parent.iterdir()) == []
