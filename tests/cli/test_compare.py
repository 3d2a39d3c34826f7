"""`halfbyte compare` as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.small_file import write_small
from tests.model.tiny import make_tiny_gguf

TEXT = "the thing and then another one: " * 8


pytestmark = pytest.mark.usefixtures("no_kernels")


@pytest.fixture
def a(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "a.gguf", weights="q8_0"))


@pytest.fixture
def b(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "b.gguf", weights="q4_0", formats={"output": "q8_0"}))


def table(out: str) -> dict[str, list[str]]:
    """The cells of each row by its title."""
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in out.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def test_two_files_stand_side_by_side(run, a: str, b: str) -> None:
    done = run("compare", a, b)
    assert (done.code, done.err) == (0, "")
    rows = table(done.out)
    assert rows["file"] == ["a.gguf", "b.gguf"]
    assert rows["in q4_0"][0] == "-"
    assert rows["in q4_0"][1].endswith("MB, 22 tensors")
    assert rows["in q8_0"][1].endswith("MB, 1 tensors")
    bits = [float(cell) for cell in rows["bits per weight"]]
    assert 4.5 < bits[1] < bits[0] < 9
    assert "perplexity" not in rows
    assert "differs" not in done.out


def test_a_text_adds_the_figures(run, a: str, b: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    words = ("--file", str(tmp_path / "text.txt"), "--window", "32")
    rows = table(run("compare", a, b, *words).out)
    expected = run("perplexity", b, "--base", a, *words, "--json").json
    assert rows["perplexity"][0].split()[0] == f"{expected['base_perplexity']:.4f}"
    assert rows["perplexity"][1].split()[0] == f"{expected['perplexity']:.4f}"
    assert rows["mean KL divergence"][0].split()[0] == f"{expected['mean_kld']:.6f}"
    found = run("compare", a, b, *words, "--json").json
    assert found["a"]["perplexity"] == expected["base_perplexity"]
    assert {name: found["b"][name] for name in expected if name != "base_perplexity"} == {
        name: value for name, value in expected.items() if name != "base_perplexity"
    }


def test_json_without_a_text(run, a: str, b: str) -> None:
    found = run("compare", a, b, "--json").json
    assert found.keys() == {"a", "b", "differences"}
    assert found["a"]["file_bytes"] == Path(a).stat().st_size
    assert found["b"]["formats"]["q8_0"]["tensors"] == 1
    assert (found["b"]["architecture"], found["b"]["vocabulary"], found["b"]["context_length"]) == ("llama", 300, 256)
    assert found["differences"] == []


def test_tensors_are_listed_where_asked_for(run, a: str, b: str) -> None:
    rows = table(run("compare", a, b, "--tensors").out)
    assert rows["output.weight"] == ["q8_0 -> q8_0", "0.000e+00"]
    (formats, error) = rows["blk.1.ffn_up.weight"]
    assert formats == "q8_0 -> q4_0"
    assert float(error) > 0.1
    errors = {each["name"]: each for each in run("compare", a, b, "--tensors", "--json").json["tensors"]}
    assert f"{errors['blk.1.ffn_up.weight']['error']:.3e}" == error


def test_files_of_unknown_architectures_are_compared_too(run, a: str, tmp_path: Path) -> None:
    small = str(write_small(tmp_path / "small.gguf"))
    done = run("compare", a, small)
    assert (done.code, done.err) == (0, "")
    told = [line for line in done.out.splitlines() if line.startswith("differs: ")]
    assert told[0] == "differs: architecture: llama and unheard-of"
    assert told[2] == "differs: vocabulary: 300 and 259 tokens"
    assert "differs: tensors only in B: a, b" in told


def test_a_model_that_is_not_there_is_named(run, a: str) -> None:
    done = run("compare", a, a + "f")
    assert done.code == 1
    assert "there is no file" in done.err
