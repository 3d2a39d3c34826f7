"""A chat as a person has it: through a pseudo-terminal, with an echo for a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("no pseudo-terminal here", allow_module_level=True)
pexpect = pytest.importorskip("pexpect")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def chat(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[pexpect.spawn]:
    """A terminal of 24 rows and 200 columns; its variables may be added to."""
    variables = {"HALFBYTE_CACHE": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment = os.environ | variables | getattr(request, "param", {})
    words = ["-m", "tests.cli.fake_llm", "chat", "model"]
    child = pexpect.spawn(
        sys.executable, words, cwd=str(ROOT), env=environment, encoding="utf-8", timeout=20, dimensions=(24, 200)
    )
    child.delaybeforesend = None
    child.expect("Ctrl-D leaves")
    prompt(child)
    yield child
    child.close(force=True)


def ask(child: pexpect.spawn, line: str) -> str:
    """Type a line; all that the terminal got until the next one can be typed."""
    child.send(f"{line}\r")
    child.expect_exact("\x1b[?2004l")  # the line is taken
    child.expect_exact("\x1b[?2004h")
    shown = child.before
    for sign in (">", "\x1b[?25h"):
        child.expect_exact(sign)
    return str(shown)


def prompt(child: pexpect.spawn) -> None:
    """Wait until the next line can be typed: paste mode is on and the cursor shows behind the mark."""
    for sign in ("\x1b[?2004h", ">", "\x1b[?25h"):
        child.expect_exact(sign)


def test_answers_follow_each_other_and_ctrl_d_leaves(chat: pexpect.spawn) -> None:
    chat.send("first\r")
    chat.expect_exact("<u:first>")
    chat.expect_exact("decode 4.0 tok/s]")
    prompt(chat)
    chat.send("second\r")
    chat.expect_exact("<u:first|a:<u:first>|u:second>")
    prompt(chat)
    chat.send("\x04")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0


def test_ctrl_c_stops_the_answer_and_the_chat_goes_on(chat: pexpect.spawn) -> None:
    chat.send("slow\r")
    chat.expect_exact("word word word")
    chat.sendintr()
    chat.expect_exact("[stopped]")
    prompt(chat)
    chat.send("/stats\r")
    chat.expect_exact("2 messages")
    prompt(chat)
    chat.send("/exit\r")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0


def test_ctrl_c_twice_on_an_empty_line_leaves(chat: pexpect.spawn) -> None:
    chat.send("\x03")
    chat.expect_exact("Ctrl-C again")
    prompt(chat)
    chat.send("\x03")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0


def test_an_error_does_not_end_the_chat(chat: pexpect.spawn) -> None:
    chat.send("too long\r")
    chat.expect_exact("error: the prompt has 9 tokens")
    prompt(chat)
    chat.send("/set temprature=1\r")
    chat.expect_exact("did you mean 'temperature'")
    prompt(chat)
    chat.send("short\r")
    chat.expect_exact("<u:short>")


def test_the_history_is_kept_for_its_owner_alone(chat: pexpect.spawn, tmp_path: Path) -> None:
    chat.send("remember\r")
    chat.expect_exact("<u:remember>")
    prompt(chat)
    kept = tmp_path / "chat_history"
    assert "+remember" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_paragraphs_and_code_are_set_when_they_are_whole(chat: pexpect.spawn) -> None:
    shown = ask(chat, "markdown")
    assert "Some **bold** words." in shown, "as it comes"
    assert "Some \x1b[1mbold\x1b[0m words." in shown, "as it is meant"
    assert shown.index("**bold**") < shown.index("\x1b[1mbold")
    assert "\x1b[2A\x1b[J" in shown, "two rows give way"
    assert "\x1b[5A\x1b[J" in shown, "and the five of the code"


@pytest.mark.parametrize("chat", [{"FAKE_THINKS": "1"}], indirect=True)
def test_thinking_is_dim_and_folds(chat: pexpect.spawn) -> None:
    shown = ask(chat, "think")
    assert "\x1b[2mso and so\x1b[22m" in shown.replace("\x1b[22m\x1b[2m", "")
    assert shown.rindex("[thought for") < shown.rindex("thus")
    assert "so and so" in ask(chat, "/thinking")


def test_a_question_is_edited_and_asked_again(chat: pexpect.spawn) -> None:
    ask(chat, "first")
    assert "edit it and press Enter" in ask(chat, "/edit")
    chat.send("!\r")
    chat.expect_exact("<u:first!>")


def test_the_status_line_shows_model_context_and_speed(tmp_path: Path) -> None:
    """Below the line that is typed, once the terminal says where its cursor is."""
    environment = os.environ | {"HALFBYTE_CACHE": str(tmp_path), "TERM": "xterm"}
    words = ["-m", "tests.cli.fake_llm", "chat", "some/model.gguf"]
    child = pexpect.spawn(
        sys.executable, words, cwd=str(ROOT), env=environment, encoding="utf-8", timeout=20, dimensions=(24, 200)
    )
    child.expect_exact("\x1b[6n")
    child.send("\x1b[2;1R")
    child.expect_exact("model.gguf  context 0/4096 (0%)")
    child.send("first\r")
    child.expect_exact("<u:first>")
    child.expect_exact("\x1b[6n")
    child.send("\x1b[5;1R")
    child.expect_exact("model.gguf  context 14/4096 (0%)  4.0 tok/s")
    child.close(force=True)


def test_tab_completes_commands_settings_and_files(chat: pexpect.spawn, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    for start, rest, said in (
        ("/sta", "ts", "0 messages"),
        ("/set min_", "p=", "write NAME=VALUE"),
        (f"/read {tmp_path}/not", "es.txt", "4 characters go before"),
    ):
        chat.send(start + "\t")
        chat.expect_exact(rest)
        assert said in ask(chat, "")


def test_alt_enter_makes_a_line_within_a_question(chat: pexpect.spawn) -> None:
    assert "<u:one\r\ntwo>" in ask(chat, "one\x1b\rtwo")


def test_a_saved_chat_is_loaded_again(chat: pexpect.spawn, tmp_path: Path) -> None:
    ask(chat, "first")
    assert "saved 2 messages" in ask(chat, f"/save {tmp_path}/talk.json")
    ask(chat, "/reset")
    assert "7 computed tokens are back" in ask(chat, f"/load {tmp_path}/talk.json")
    assert "<u:first|a:<u:first>|u:more>" in ask(chat, "more")


def test_probabilities_are_coloured(chat: pexpect.spawn) -> None:
    ask(chat, "a")
    shown = ask(chat, "/probs")
    assert "\x1b[32m" in shown
    assert "\x1b[31m" in shown
    assert "least certain" in shown
