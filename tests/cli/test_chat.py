from __future__ import annotations

import pytest

from halfbyte.cli.chat_commands import COMMANDS, obey
from halfbyte.cli.conversation import Conversation
from halfbyte.errors import ConfigError, ContextExceededError
from tests.cli.fake_llm import FakeLLM, FakeStream


def test_the_whole_of_a_pipe_is_one_question(run, loaded) -> None:
    done = run("chat", piped=b"one\ntwo\n")
    assert (done.code, done.out) == (0, "<u:one\ntwo>\n")
    assert done.err.startswith("[prompt 3 tokens (1 cached)")
    assert (loaded[0].model, loaded[0].closed) == ("smollm2-135m", True)


def test_one_question_with_a_system_prompt(run, loaded) -> None:
    assert run("chat", "m", "-p", "Hi", "--system", "Be kind").out == "<s:Be kind|u:Hi>\n"


def test_a_pipe_goes_behind_the_question(run, loaded) -> None:
    assert run("chat", "-p", "Sum up:", piped=b"text\n").out == "<u:Sum up:\ntext>\n"


def test_an_answer_that_was_cut_says_so(run, loaded) -> None:
    assert run("chat", "-p", "Hi", "-n", "3").err.endswith("[cut: --max-tokens is reached or the context is full]\n")


@pytest.mark.parametrize(
    ("metadata", "words", "expected"),
    [
        ({}, [], 0.8),
        ({"general.sampling.temp": 0.3}, [], None),
        ({"general.sampling.temp": 0.3}, ["--temperature", "0"], 0.0),
    ],
)
def test_the_temperature_is_the_persons_then_the_models_then_ours(
    run, loaded, monkeypatch, metadata, words, expected
) -> None:
    monkeypatch.setattr(FakeLLM, "metadata", metadata)
    run("chat", "-p", "Hi", *words)
    assert loaded[0].calls[0][1]["temperature"] == expected


@pytest.fixture
def conversation() -> Conversation:
    return Conversation(FakeLLM("m"), {"temperature": 0.5})  # type: ignore[arg-type]


def roles(conversation: Conversation) -> str:
    return "".join(turn["role"][0] for turn in conversation.messages())


def test_every_turn_is_told_to_the_model(conversation: Conversation) -> None:
    conversation.system = "s"
    assert "".join(conversation.ask("a")) == "<s:s|u:a>"
    assert "".join(conversation.ask("b")) == "<s:s|u:a|a:<s:s|u:a>|u:b>"
    assert roles(conversation) == "suaua"
    assert conversation.finish_reason == "stop"


def test_closing_an_answer_cancels_it_and_keeps_what_came(conversation: Conversation) -> None:
    before = FakeStream.open
    pieces = conversation.ask("slow")
    assert [next(pieces), next(pieces)] == ["word ", "word "]
    pieces.close()
    assert FakeStream.open == before
    assert conversation.turns[-1] == {"role": "assistant", "content": "word word "}
    assert conversation.timings is None


def test_a_question_that_cannot_be_served_is_taken_back(conversation: Conversation) -> None:
    with pytest.raises(ContextExceededError):
        list(conversation.ask("too long"))
    assert conversation.turns == []


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [("temperature=0.7", "temperature", 0.7), ("top-k = 5", "top_k", 5), ("max_tokens=3", "max_tokens", 3)],
)
def test_settings_change_the_next_answer(conversation: Conversation, text: str, name: str, value: float) -> None:
    assert conversation.set(text) == name
    assert conversation.settings[name] == value


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("temprature=1", "did you mean 'temperature'"),
        ("temperature", "write NAME=VALUE"),
        ("temperature=", "write NAME=VALUE"),
        ("temperature=hot", "'hot' is not a number"),
        ("top_k=1.5", "'1.5' is not a whole number"),
        ("top_p=2", "top_p must be"),
        ("min_p=nan", "min_p must be"),
        ("max_tokens=0", "max_tokens must be 1 or more"),
    ],
)
def test_a_wrong_setting_changes_nothing(conversation: Conversation, text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        conversation.set(text)
    assert conversation.settings == {"temperature": 0.5}


def test_the_commands_of_the_table(conversation: Conversation, capsys: pytest.CaptureFixture[str]) -> None:
    list(conversation.ask("a"))
    said: dict[str, str] = {}
    for line in ("/help", "/stats", "/set", "/set top_k=3", "/system Be kind", "/system", "/reset", "/hepl", "/stats"):
        assert obey(conversation, line)
        captured = capsys.readouterr()
        assert captured.out == ""
        said[line] = captured.err
    assert all(name in said["/help"] for name in COMMANDS)
    assert said["/set"] == "temperature = 0.5\n"
    assert said["/set top_k=3"] == "top_k = 3\n"
    assert said["/system"] == "system prompt: Be kind\n"
    assert said["/hepl"] == "error: unknown command /hepl; did you mean '/help'?\n"
    assert said["/stats"] == "0 messages [no whole answer yet]\n"
    assert roles(conversation) == "s"
    assert not obey(conversation, "/exit")


def test_stats_repeat_the_last_figures(conversation: Conversation, capsys: pytest.CaptureFixture[str]) -> None:
    list(conversation.ask("a"))
    obey(conversation, "/stats")
    assert capsys.readouterr().err.startswith("2 messages [prompt 3 tokens (1 cached), prefill 4 tok/s")
