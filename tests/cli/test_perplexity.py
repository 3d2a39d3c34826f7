"""`halfbyte perplexity` as it is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.tiny import make_tiny_gguf

TEXT = "the thing and then another one: " * 8
FIGURES = {"perplexity", "perplexity_se", "tokens", "windows"}
FAR = {"base_perplexity", "mean_kld", "mean_kld_se", "median_kld", "p99_kld", "max_kld", "top1"}


pytestmark = pytest.mark.usefixtures("no_kernels")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "model.gguf", weights="q8_0"))


@pytest.fixture
def base(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "base.gguf", seed=1, weights="q8_0"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return str(tmp_path / "text.txt")


def test_json_has_the_figures_by_name(run, model: str, file: str) -> None:
    done = run("perplexity", model, "--file", file, "--window", "32", "--json")
    assert done.code == 0
    assert done.json.keys() == FIGURES
    assert done.json["tokens"] == 15 * done.json["windows"] > 15
    assert done.json["perplexity"] > 1


def test_json_with_a_base_has_those_of_both(run, model: str, base: str, file: str) -> None:
    alone = [run("perplexity", path, "--file", file, "--window", "32", "--json").json for path in (model, base)]
    found = run("perplexity", model, "--file", file, "--base", base, "--window", "32", "--json").json
    assert found.keys() == FIGURES | FAR
    assert [found["perplexity"], found["base_perplexity"]] == [each["perplexity"] for each in alone]
    assert 0 < found["median_kld"] <= found["p99_kld"] <= found["max_kld"]


def test_the_same_model_as_base_does_not_diverge(run, model: str, file: str) -> None:
    found = run("perplexity", model, "--file", file, "--base", model, "--window", "32", "--json").json
    assert (found["mean_kld"], found["max_kld"], found["top1"]) == (0.0, 0.0, 1.0)


def test_people_get_a_line_for_each_figure_with_its_unit(run, model: str, base: str, file: str) -> None:
    done = run("perplexity", model, "--file", file, "--base", base, "--window", "32", "--chunks", "2")
    lines = done.out.splitlines()
    assert lines[0] == "30 tokens scored, the second halves of 2 windows of 32"
    assert [re.split(r"  +", line)[0] for line in lines[1:]] == [
        "perplexity",
        "base perplexity",
        "mean KL divergence",
        "median",
        "99th percentile",
        "maximum",
        "same likeliest token",
    ]
    assert len({line.index(".") for line in lines[1:]}) == 1
    assert re.search(r"\d\.\d{4} +\+- \d+\.\d{4}$", lines[1])
    assert lines[3].endswith("nats a token")
    assert lines[-1].endswith("% of tokens")
    assert len(run("perplexity", model, "--file", file, "--window", "32").out.splitlines()) == 2


def test_a_text_of_less_than_a_window_is_an_error_that_says_what_to_do(run, model: str, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("xyz" * 7, encoding="utf-8")
    done = run("perplexity", model, "--file", str(short), "--window", "32")
    assert (done.code, done.out) == (1, "")
    assert "the text has 21 tokens, fewer than one window of 32" in done.err
    assert "take a smaller window, at most 21" in done.err


def test_a_file_is_needed(run, model: str) -> None:
    done = run("perplexity", model)
    assert (done.code, done.out) == (2, "")
    assert "--file missing; for example: halfbyte perplexity" in done.err


def test_a_file_that_cannot_be_read_is_named_before_a_model_is_loaded(run, tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        done = run("perplexity", "no-such-model", "--file", str(path))
        assert done.code == 1
        assert f"{path}: cannot be read: " in done.err


def test_bytes_that_are_no_text_are_refused_at_their_place(run, model: str, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    done = run("perplexity", model, "--file", str(tmp_path / "latin.txt"))
    assert done.code == 1
    assert "latin.txt: is no UTF-8 text: convert it first (at byte 3)" in done.err


def test_a_base_with_another_vocabulary_is_refused(run, model: str, file: str, tmp_path: Path) -> None:
    other = make_tiny_gguf(tmp_path / "other.gguf", n_vocab=310)
    done = run("perplexity", model, "--file", file, "--base", str(other), "--window", "32")
    assert done.code == 1
    assert "300 and 310 tokens" in done.err


def test_a_window_beyond_the_models_context_is_refused(run, model: str, file: str) -> None:
    done = run("perplexity", model, "--file", file)
    assert done.code == 1
    assert "a window of 512 is more than the 256 tokens that" in done.err
