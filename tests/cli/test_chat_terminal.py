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
def chat(tmp_path: Path) -> Iterator[pexpect.spawn]:
    environment = os.environ | {"HALFBYTE_CACHE": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    words = ["-m", "tests.cli.fake_llm", "chat", "model"]
    child = pexpect.spawn(sys.executable, words, cwd=str(ROOT), env=environment, encoding="utf-8", timeout=20)
    child.delaybeforesend = None
    child.expect("Ctrl-D leaves")
    prompt(child)
    yield child
    child.close(force=True)


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
