"""What people hand to the commands that quantize and measure, and what must not come of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from halfbyte.cli import main as main_module
from halfbyte.cli.json_text import json_text
from halfbyte.errors import ConfigError
from halfbyte.formats.new_file import check_place
from halfbyte.quant.search import NUMPY
from halfbyte.tools.quantize import quantizer
from halfbyte.tools.quantize.imatrix import ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry
from halfbyte.tools.quantize.imatrix_file import write_imatrix
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(autouse=True)
def _uncompiled(no_kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizer, "CompiledSearch", lambda progress: NUMPY)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny_gguf(tmp_path / "model.gguf", n_layers=1)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("the thing and then another one: " * 8, encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_what_is_no_file_is_never_replaced_by_one(run, model: Path, text: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in (["quantize", str(model), str(pipe), "q8_0", "--force"], ["imatrix", str(model), "-o", str(pipe)]):
        done = run(*words, *(["--file", str(text)] if words[0] == "imatrix" else []))
        assert (done.code, done.out) == (1, "")
        assert "it is a device or a pipe, which a file would replace" in done.err
        assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", ".", "no/new.gguf", "x" * 300])
def test_a_place_where_no_file_can_be_is_refused_at_once(run, model: Path, tmp_path: Path, name: str) -> None:
    done = run("quantize", str(model), str(tmp_path / name) if name else "", "q8_0")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("error: ")
    assert "Errno" not in done.err


def test_a_folder_that_takes_nothing_is_known_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(ConfigError, match="takes no files"):
        check_place(tmp_path / "new.gguf")


def test_an_importance_matrix_replaces_neither_the_model_nor_the_text(run, model: Path, text: Path) -> None:
    for precious in (model, text):
        before = precious.read_bytes()
        done = run("imatrix", str(model), "--file", str(text), "-o", str(precious), "--window", "32")
        assert (done.code, done.out) == (1, "")
        assert "exists already and is no importance matrix" in done.err
        assert precious.read_bytes() == before


@pytest.mark.parametrize("words", [["perplexity", "m"], ["imatrix", "m"], ["quantize", "m", "new.gguf", "q4_0"]])
def test_a_text_without_its_option_is_told_where_it_goes(run, words: list[str]) -> None:
    done = run(*words, "text.txt")
    assert (done.code, done.out) == (2, "")
    assert "unexpected 'text.txt'; the file of a text stands behind --file, for example: halfbyte" in done.err


def test_a_word_too_many_where_there_is_no_text_shows_an_example(run) -> None:
    done = run("pull", "m", "n")
    assert (done.code, "quotes" in done.err) == (2, False)
    assert "unexpected 'n'; for example: halfbyte pull" in done.err


def test_ctrl_c_that_an_import_turned_into_an_error_of_its_own_is_still_ctrl_c(run, monkeypatch) -> None:
    def imported(words: list[str]) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("a bad install") from None
        return 0

    monkeypatch.setattr(main_module, "_run", imported)
    before = signal.getsignal(signal.SIGINT)
    done = run("chat")
    assert (done.code, done.out, done.err) == (130, "", "")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_import_that_fails_by_itself_is_not_taken_for_ctrl_c(run, monkeypatch) -> None:
    def imported(words: list[str]) -> int:
        raise ImportError("a bad install")

    monkeypatch.setattr(main_module, "_run", imported)
    with pytest.raises(ImportError, match="a bad install"):
        run("chat")


@pytest.mark.parametrize("command", ["perplexity", "compare", "quantize", "imatrix"])
def test_an_empty_text_is_named_before_the_work(run, model: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    new = str(tmp_path / "new.gguf")
    more = {"perplexity": [], "compare": [str(model)], "quantize": [new, "q8_0"], "imatrix": ["-o", new]}
    done = run(command, str(model), *more[command], "--file", str(tmp_path / "empty.txt"))
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "empty.txt: the text is empty" in done.err


def test_an_importance_matrix_of_another_model_is_refused_before_the_work(run, model: Path, tmp_path: Path) -> None:
    for name, experts, columns in (("other.weight", 1, 64), ("blk.0.ffn_up.weight", 1, 48), ("output.weight", 3, 64)):
        entry = Entry(np.ones((experts, columns), np.float32), np.ones(experts, np.float32))
        write_imatrix(ImportanceMatrix({name: entry}), tmp_path / "i.gguf")
        words = ["quantize", str(model), str(tmp_path / "new.gguf"), "q8_0", "--imatrix", str(tmp_path / "i.gguf")]
        for done in (run(*words), run(*words, "--dry-run")):
            assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
            assert "the importance matrix is another model's" in done.err


def test_json_stays_json_where_a_model_is_so_wrong_that_perplexity_is_infinite(run, text: Path, tmp_path: Path) -> None:
    head = np.random.default_rng(0).normal(0, 1e9, (300, 64))
    wrong = make_tiny_gguf(tmp_path / "wrong.gguf", n_layers=1, tensors={"output.weight": head})
    words = ["--file", str(text), "--window", "32", "--json"]
    for done in (run("perplexity", str(wrong), *words), run("compare", str(wrong), str(wrong), *words)):
        assert done.code == 0
        assert "Infinity" not in done.out
        found = done.json.get("b", done.json)
        assert (found["perplexity"], found["perplexity_se"]) == (None, None)


def test_what_json_has_no_word_for_is_null() -> None:
    value = {"a": [1.5, float("nan"), (float("-inf"), 2)], "b": {"c": float("inf")}, "d": True, "e": "NaN"}
    assert json.loads(json_text(value)) == {"a": [1.5, None, [None, 2]], "b": {"c": None}, "d": True, "e": "NaN"}
