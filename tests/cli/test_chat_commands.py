"""The commands of a chat, each by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from halfbyte.cli.chat_commands import COMMANDS, obey
from halfbyte.cli.chat_room import Room
from halfbyte.cli.conversation import Conversation
from halfbyte.errors import ConfigError, FormatError, RequestError
from tests.cli.fake_llm import FakeLLM


@pytest.fixture
def room() -> Room:
    conversation = Conversation(FakeLLM("m"), {"temperature": 0.5})  # type: ignore[arg-type]
    return Room(conversation, "m", FakeLLM)  # type: ignore[arg-type]


def roles(conversation: Conversation) -> str:
    return "".join(turn["role"][0] for turn in conversation.messages())


def answer(pieces: Iterable[tuple[str, str]]) -> str:
    return "".join(text for kind, text in pieces if kind == "answer")


@pytest.mark.parametrize("line", ["/undo", "/retry", "/edit", "/probs", "/thinking"])
def test_what_needs_a_question_says_that_there_is_none(room: Room, line: str) -> None:
    with pytest.raises(RequestError, match=r"there is no|has no"):
        obey(room, line)


def say(room: Room, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says, and nothing of it is an answer."""
    obey(room, line)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_the_commands_of_the_table(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    list(room.conversation.ask("a"))
    assert all(name in say(room, "/help", capsys) for name in COMMANDS)
    assert say(room, "/stats", capsys).startswith("2 messages, 6 of 4096 tokens [prompt 3 tokens (1 cached), prefill 4")
    assert say(room, "/set", capsys) == "temperature = 0.5\n"
    assert say(room, "/set top_k=3", capsys) == "top_k = 3\n"
    assert say(room, "/system Be kind", capsys).startswith("the conversation starts anew")
    assert say(room, "/system", capsys) == "system prompt: Be kind\n"
    assert say(room, "/stats", capsys) == "0 messages, 0 of 4096 tokens [no whole answer yet]\n"
    assert roles(room.conversation) == "s"
    with pytest.raises(RequestError, match="unknown command /hepl; did you mean '/help'"):
        obey(room, "/hepl")
    assert room.open
    obey(room, "/exit")
    assert not room.open


def test_a_question_taken_back_can_be_edited(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    list(room.conversation.ask("one\ntwo"))
    assert say(room, "/edit", capsys).endswith("edit it and press Enter\n")
    assert (room.prefill, room.conversation.turns) == ("one\ntwo", [])


def test_branches_go_their_own_ways(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    talk = room.conversation
    list(talk.ask("a"))
    assert (
        say(room, "/branch other", capsys) == "in branch other: a new branch that begins as the conversation is now\n"
    )
    list(talk.ask("b"))
    assert room.status.endswith("branch other")
    assert say(room, "/branch main", capsys) == "in branch main: 2 messages\n"
    assert answer(talk.ask("c")) == "<u:a|a:<u:a>|u:c>"
    assert say(room, "/branch other", capsys) == "in branch other: 4 messages\n"
    assert answer(talk.ask("d")).endswith("|u:d>")
    assert say(room, "/branch", capsys) == "main, other (here)\n"


def test_probabilities_of_an_answer(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    list(room.conversation.ask("a"))
    shown = say(room, "/probs", capsys)
    assert "<u:a>" in shown
    assert "'X' 0.7%" in shown
    assert "5.0%" in shown
    assert "99.0%" in shown
    room.conversation.last_answer().ids = ()
    with pytest.raises(RequestError, match="comes from a file"):
        obey(room, "/probs")


def test_another_model_goes_on(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    first = room.conversation.llm
    list(room.conversation.ask("a"))
    assert say(room, "/model other.gguf", capsys).startswith("other.gguf: isa fake")
    assert first.closed
    assert room.conversation.llm.model == "other.gguf"
    assert answer(room.conversation.ask("b")) == "<u:a|a:<u:a>|u:b>"
    assert room.status == "other.gguf  context 24/4096 (1%)  8.0 tok/s"


def test_a_conversation_comes_back_from_its_file(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, path = room.conversation, tmp_path / "talk é.json"
    talk.system = "be kind"
    list(talk.ask('say "é"'))
    talk.turns[-1].thinking = "hm"
    told = say(room, f"/save {path}", capsys)
    assert told == f"saved 2 messages to {path}\nand {talk.context_used} computed tokens to {path}.kv\n"
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["messages"][0] == {"role": "user", "content": 'say "é"'}
    assert saved["messages"][1]["thinking"] == "hm"
    before = [(turn.message, turn.thinking) for turn in talk.turns]
    say(room, "/set temperature=1.5", capsys)
    say(room, "/system other", capsys)
    assert say(room, f"/load {path}", capsys) == f"2 messages from {path}\n7 computed tokens are back\n"
    assert [(turn.message, turn.thinking) for turn in talk.turns] == before
    assert (talk.system, talk.settings["temperature"]) == ("be kind", 0.5)
    Path(f"{path}.kv").write_text("bad")
    assert "they are read anew: " in say(room, f"/load {path}", capsys)
    talk.llm.metadata = {"general.name": "another"}
    assert "they were with m; m reads them anew" in say(room, f"/load {path}", capsys)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, ConfigError, "cannot be read: No such file"),
        ("{", FormatError, "is no JSON"),
        ("[1]", FormatError, "is no conversation that /save wrote"),
        ('{"halfbyte_chat": 1, "messages": [{"role": "user"}]}', FormatError, "content must be a text"),
        ('{"halfbyte_chat": 1, "messages": [{"role": "x"}]}', FormatError, r"messages\[0\] wants a role"),
        ('{"halfbyte_chat": 1, "messages": 3}', FormatError, "messages must be a list"),
        ('{"halfbyte_chat": 1, "settings": {"temprature": 1}}', FormatError, "did you mean 'temperature'"),
        ('{"halfbyte_chat": 1, "settings": {"max_tokens": 0}}', FormatError, "max_tokens must be 1"),
    ],
)
def test_a_file_that_is_no_conversation_changes_nothing(room: Room, tmp_path: Path, content, error, message) -> None:
    list(room.conversation.ask("a"))
    path = tmp_path / "chat.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=message):
        obey(room, f"/load {path}")
    assert roles(room.conversation) == "ua"


def test_a_place_that_cannot_be_written_is_told(room: Room, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        obey(room, f"/save {tmp_path}/none/chat.json")
    with pytest.raises(ConfigError, match=r"name a file, for example: /save chat\.json"):
        obey(room, "/save")
    assert list(tmp_path.iterdir()) == []


def test_a_file_goes_before_a_question(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two words.txt"
    path.write_text("text\n")
    assert say(room, f"/read {path}", capsys).endswith("5 characters go before your next question\n")
    assert answer(room.conversation.ask("Why?")) == "<u:two words.txt:\n```\ntext\n```\n\nWhy?>"
    path.rename(tmp_path / "one.txt")
    obey(room, f"/read {tmp_path}/one.txt Why?")
    assert capsys.readouterr().out.endswith("u:one.txt:\n```\ntext\n```\n\nWhy?>\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        obey(room, "/read none.txt")
