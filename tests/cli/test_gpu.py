"""Options about a GPU: how they are said, shown and refused."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from halfbyte.cli import bench
from halfbyte.cli.main import COMMANDS
from halfbyte.cli.options import GPU, gpu_words, on_gpu
from halfbyte.cli.parser import help_text, parse
from halfbyte.errors import ResourceError
from halfbyte.runtime import offload
from halfbyte.runtime.config import LoadConfig
from tests.model.tiny import make_tiny_gguf
from tests.source_tree import ROOT

WITH = ("chat", "generate", "serve", "embed", "bench", "perplexity", "check")
NONE = {"gpu_layers": 0, "experts_on_cpu": False, "kv_on_cpu": False}


def test_commands_that_run_a_model_take_them() -> None:
    assert tuple(name for name, command in COMMANDS.items() if command.gpu) == WITH
    assert all(COMMANDS[name].gpu == GPU for name in WITH)


@pytest.mark.parametrize("name", WITH)
def test_help_shows_them_apart(name: str) -> None:
    shown = re.sub(r"\s+", " ", help_text(COMMANDS[name]).partition("With an NVIDIA GPU:")[2])
    assert "--gpu-layers TEXT The last layers that the GPU computes; auto is as many as fit" in shown
    assert "(number, auto or all; default 0)" in shown
    assert shown.index("--experts-on-cpu") < shown.index("--kv-on-cpu")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--gpu-layers", "12"], {"gpu_layers": 12}),
        (["--gpu-layers=auto"], {"gpu_layers": "auto"}),
        (["--gpu-layers", " all "], {"gpu_layers": "all"}),
        (["--gpu-layers=-3"], {"gpu_layers": -3}),
        (["--gpu-layers", "8", "--kv-on-cpu"], {"gpu_layers": 8, "kv_on_cpu": True}),
        (["--gpu-layers", "8", "--experts-on-cpu"], {"gpu_layers": 8, "experts_on_cpu": True}),
    ],
    ids=str,
)
def test_they_are_keywords_of_load(run, loaded, words: list[str], options: dict) -> None:
    assert run("generate", "m", "hello", *words).code == 0
    assert {key: loaded[0].options[key] for key in NONE} == NONE | options
    values = parse(COMMANDS["bench"], ["m", *words])
    again = parse(COMMANDS["generate"], ["m", "hello", *gpu_words(values)])
    assert on_gpu(again) == on_gpu(values)


def test_bench_measures_with_them_and_says_so(run, loaded, monkeypatch, tmp_path: Path) -> None:
    starts = []
    monkeypatch.setitem(
        __import__("sys").modules, "halfbyte.cpu_kernels.bandwidth", SimpleNamespace(read_gb_s=lambda threads: 20.0)
    )
    monkeypatch.setattr(bench, "_first_token", lambda path, threads, more: starts.append(more) or 0.25)
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    figures = run("bench", str(path), "--gpu-layers", "all", "--json").json
    assert all(llm.options["gpu_layers"] == "all" for llm in loaded)
    assert {tuple(words) for words in starts} == {("--gpu-layers=all",)}
    assert "gpu" not in figures


@pytest.fixture
def model(tmp_path: Path, monkeypatch) -> str:
    def nothing():
        raise ResourceError("no NVIDIA driver on this machine; install one, or leave out gpu_layers")

    monkeypatch.setattr(offload, "open_device", nothing)
    return str(make_tiny_gguf(tmp_path / "m.gguf"))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--gpu-layers", "2"], "no NVIDIA driver on this machine"),
        (["--gpu-layers", "all"], "no NVIDIA driver on this machine"),
        (["--gpu-layers", "most"], "gpu_layers must be a number of layers of at least 0, 'auto' or 'all', not 'most'"),
        (["--gpu-layers=-1"], "not -1"),
        (["--kv-on-cpu"], "kv_on_cpu is about layers on a GPU: say how many with gpu_layers"),
    ],
    ids=str,
)
def test_mistakes_get_one_line(run, model: str, words: list[str], hint: str) -> None:
    done = run("generate", model, "hello", *words)
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert hint in done.err
    assert done.err.count("\n") <= 2


@pytest.mark.usefixtures("no_kernels")
def test_auto_without_a_gpu_answers_and_says_why_there_is_none(run, model: str) -> None:
    done = run("generate", model, "hello", "--gpu-layers", "auto", "--max-tokens", "3")
    assert done.code == 0
    assert "[gpu_layers='auto': the CPU computes all layers: no NVIDIA driver on this machine" in done.err
    assert logging.getLogger("halfbyte.load").level == logging.NOTSET
    silent = run("generate", model, "hello", "--max-tokens", "3")
    assert "NVIDIA" not in silent.err
    assert silent.out == done.out


PAGE = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")


def test_the_page_about_it_names_what_there_is() -> None:
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) == {option.flag for option in GPU}
    assert set(re.findall(r"`(\w+)=", PAGE)) <= LoadConfig.__dataclass_fields__.keys()
    commands = re.search(r"^(`.*`) take them", PAGE, re.MULTILINE)[1]
    assert tuple(re.findall(r"`(\w+)`", commands)) == WITH
