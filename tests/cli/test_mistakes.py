"""A mistake gets one line that says what to do, and an exit code that a script can read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from halfbyte.cli import main as main_module
from halfbyte.cli import terminal


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["gnerate"], "unknown command 'gnerate'; did you mean 'generate'?"),
        (["xyz"], "commands: chat, generate"),
        (["--nonsense"], "unknown option '--nonsense'"),
        (["generate"], "MODEL missing; for example: halfbyte generate smollm2-135m"),
        (["pull", "m", "--chek"], "unknown option --chek; did you mean '--check'?"),
        (["generate", "m", "hello", "world"], "unexpected 'world'; put a text of several words in quotes"),
        (["generate", "m", "x", "--temp", "1"], "unknown option --temp"),
        (["generate", "m", "x", "--max-tokens"], "--max-tokens"),
        (["generate", "m", "x", "--max-tokens", "0"], "'0' is not a whole number, 1 or more"),
        (["generate", "m", "x", "--top-p", "1.1"], "'1.1' is not a number, 0 to 1"),
        (["generate", "m"], "no prompt: give one in quotes, or pipe text in"),
        (["tokenize", "m"], "no text: give one in quotes, or pipe text in"),
        (["chat", "m"], "no question: give one in quotes, or pipe text in"),
    ],
)
def test_wrong_words_exit_with_2(run, loaded, words: list[str], hint: str) -> None:
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    first, second, rest = done.err.split("\n")
    assert first.startswith("error: ")
    assert hint in first
    assert second.startswith("try: halfbyte ")
    assert rest == ""
    assert loaded == []


def test_no_words_at_all_show_the_overview(run) -> None:
    done = run()
    assert done.code == 2
    assert done.out.startswith("Example: halfbyte chat\n")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    Path("empty.gguf").write_bytes(b"")
    Path("cut.gguf").write_bytes(b"GGUF\x03\0\0\0")
    Path("model.zip").write_bytes(b"PK\x03\x04")


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("missing.gguf", "there is no file missing.gguf"),
        ("smolm2-135m", "did you mean 'smollm2-135m'?"),
        ("folder", "folder is a folder"),
        ("model.safetensors", "halfbyte reads GGUF"),
        ("empty.gguf", "empty.gguf: is empty"),
        ("cut.gguf", "cut.gguf: "),
        ("model.zip", "model.zip: is not a GGUF file"),
        ("pypi:", "not a package name"),
        ("hf:nothing", "write hf:OWNER/REPO"),
        ("", "the model's name is empty"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "tokenize"])
def test_a_wrong_model_is_one_line_and_exits_with_1(run, places, command: str, model: str, hint: str) -> None:
    words = [command, model] + (["text"] if command == "tokenize" else [])
    done = run(*words)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert hint in done.err
    assert done.err.count("\n") == 1


def test_debug_shows_where_an_error_comes_from(run, places) -> None:
    done = run("inspect", "missing.gguf", "--debug")
    assert done.code == 1
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("error: there is no file")
    assert run("--debug", "inspect", "missing.gguf").err == done.err


def test_a_text_may_look_like_an_option_behind_two_dashes(run, loaded) -> None:
    done = run("generate", "m", "-n", "100", "--", "--debug")
    assert (done.code, done.out) == (0, "<--debug>\n")


def test_an_error_of_many_lines_is_put_on_one(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.error("a\nb")
    assert capsys.readouterr().err == "error: a b\n"


def test_ctrl_c_exits_with_130(run, loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "token", interrupted)
    done = run("generate", "m", "x")
    assert (done.code, done.err) == (130, "")
    assert loaded[0].closed


def test_memory_that_runs_out_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(words: list[str]) -> int:
        raise MemoryError

    monkeypatch.setattr(main_module, "_run", fails)
    assert run("chat").err == "error: not enough memory\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_a_reader_that_leaves_ends_it_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "halfbyte", "--help"], stdout=writing, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(os.name == "nt", reason="shell redirections of POSIX")
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_what_stderr_cannot_take_is_lost_and_goes_nowhere_else(redirection: str) -> None:
    if redirection.endswith("full") and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    answer = "from halfbyte.cli import terminal as t; t.prepare(); t.line('answer'); t.note('slow'); t.error('x')"
    command = f'"$0" -c "$1" {redirection}'
    done = subprocess.run(["sh", "-c", command, sys.executable, answer], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (0, b"answer\n")
