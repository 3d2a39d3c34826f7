"""The commands that look into a file: inspect and tokenize."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfbyte.cli.main import main
from halfbyte.formats import open_gguf
from tests.cli.small_file import write_small


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.gguf")


def test_inspect_shows_a_file_of_an_unknown_architecture(run, small: Path) -> None:
    done = run("inspect", str(small))
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[1] == "2 tensors, 0.0 M weights, 9.10 bits per weight"
    assert "general.architecture 'unheard-of'" in lines
    assert "general.name 'small\\x1b[31m'" in lines
    assert "x.eps 1e-06" in lines
    assert any(line.startswith("tokenizer.ggml.tokens ['Ā', 'ā', 'Ă', 'ă', ...] (259 items)") for line in lines)
    assert any(line.startswith("x.text 'long long") and line.endswith("... (500 characters)") for line in lines)
    assert lines[-2:] == ["q8_0 1 tensors 0.00 M weights 0.00 MB", "f32 1 tensors 0.00 M weights 0.00 MB"]


def test_inspect_lists_tensors_where_asked_to(run, small: Path) -> None:
    done = run("inspect", str(small), "--tensors")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[-2:] == ["a q8_0 64 x 3 204 bytes", "b f32 5 20 bytes"]


def test_inspect_json_agrees_with_the_file(run, small: Path) -> None:
    facts = run("inspect", str(small), "--json", "--tensors").json
    with open_gguf(small) as file:
        assert facts["metadata"].keys() == file.metadata.keys()
    assert facts["file_bytes"] == small.stat().st_size
    assert (facts["weights"], facts["tensor_bytes"]) == (197, 224)
    assert facts["bits_per_weight"] == pytest.approx(8 * 224 / 197)
    assert facts["types"]["q8_0"] == {"tensors": 1, "weights": 192, "bytes": 204}
    assert facts["tensors"][1] == {"name": "b", "type": "f32", "shape": [5], "bytes": 20}
    assert facts["metadata"]["tokenizer.ggml.token_type"] == {"length": 259, "first": [1, 1, 1, 1]}
    assert facts["metadata"]["x.nan"] == "nan"
    assert "tensors" not in run("inspect", str(small), "--json").json


def test_tokenize_shows_ids_and_pieces(run, small: Path) -> None:
    done = run("tokenize", str(small), "he\n")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["    257 '<s>'", "    256 'he'", "     10 '\\n'"]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["he"], [257, 256]),
        (["he", "--no-bos"], [256]),
        (["</s>", "--special", "--no-bos"], [258]),
        (["</s>", "--no-bos"], [60, 47, 115, 62]),
    ],
)
def test_tokenize_json(run, small: Path, words: list[str], ids: list[int]) -> None:
    found = run("tokenize", str(small), *words, "--json").json
    assert (found["ids"], found["count"]) == (ids, len(ids))
    assert len(found["pieces"]) == len(ids)


def test_tokenize_reads_a_pipe(run, small: Path) -> None:
    assert run("tokenize", str(small), "--json", piped=b"he\n").json["ids"] == [257, 256]


@pytest.mark.skipif(not Path("/dev/ptmx").exists(), reason="no pseudo-terminal here")
def test_a_file_cannot_steer_the_terminal(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import pty

    reading, writing = pty.openpty()
    with open(writing, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert main(["tokenize", str(small), "\x1b[31m"]) == 0
    shown = os.read(reading, 10000)
    os.close(reading)
    assert b"<s>" in shown
    assert b"\x1b" not in shown
