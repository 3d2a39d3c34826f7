from __future__ import annotations

from collections.abc import Iterable

import pytest

from halfbyte.cli.conversation import Conversation
from halfbyte.cli.markdown_blocks import Blocks
from halfbyte.cli.turn import Turn
from halfbyte.errors import ConfigError, ContextExceededError
from halfbyte.text.reasoning import Reasoning
from halfbyte.text.thinking_marks import THINKING_MARKS
from tests.cli.fake_llm import MARKDOWN, FakeLLM, FakeStream


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


def answer(pieces: Iterable[tuple[str, str]]) -> str:
    return "".join(text for kind, text in pieces if kind == "answer")


def test_every_turn_is_told_to_the_model(conversation: Conversation) -> None:
    conversation.system = "s"
    assert answer(conversation.ask("a")) == "<s:s|u:a>"
    assert answer(conversation.ask("b")) == "<s:s|u:a|a:<s:s|u:a>|u:b>"
    assert roles(conversation) == "suaua"
    assert conversation.finish_reason == "stop"
    assert conversation.context_used == len("sa<s:s|u:a>b") + len("<s:s|u:a|a:<s:s|u:a>|u:b>")


def test_closing_an_answer_cancels_it_and_keeps_what_came(conversation: Conversation) -> None:
    before = FakeStream.open
    pieces = conversation.ask("slow")
    assert [next(pieces), next(pieces)] == [("answer", "word ")] * 2
    pieces.close()
    assert FakeStream.open == before
    assert conversation.turns[-1].message == {"role": "assistant", "content": "word word "}
    assert conversation.timings is None


def test_a_question_that_cannot_be_served_is_taken_back(conversation: Conversation) -> None:
    conversation.held = "too "
    with pytest.raises(ContextExceededError):
        list(conversation.ask("long"))
    assert conversation.turns == []
    assert conversation.held == "too "


def test_thinking_is_kept_apart_and_not_told_again(conversation: Conversation) -> None:
    conversation.llm.template.reasoning = Reasoning(THINKING_MARKS["think"], {})
    assert answer(conversation.ask("think")) == "thus"
    assert conversation.turns[-1].thinking == "so and so"
    assert answer(conversation.ask("b")) == "<u:think|a:thus|u:b>"


def test_another_answer_takes_the_place_of_the_first(conversation: Conversation) -> None:
    list(conversation.ask("a"))
    list(conversation.ask("b"))
    assert answer(conversation.retry()) == "<u:a|a:<u:a>|u:b>"
    assert roles(conversation) == "uaua"
    assert conversation.undo() == "b"
    assert roles(conversation) == "ua"


def test_an_answer_is_kept_where_no_other_can_be_had(conversation: Conversation) -> None:
    conversation.turns = [Turn("user", "too long"), Turn("assistant", "kept")]
    with pytest.raises(ContextExceededError):
        list(conversation.retry())
    assert [turn.content for turn in conversation.turns] == ["too long", "kept"]


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


def test_a_pipe_gets_no_thinking(run, loaded, monkeypatch) -> None:
    monkeypatch.setattr(FakeLLM, "reasoning", Reasoning(THINKING_MARKS["think"], {"enable_thinking": False}))
    assert run("chat", piped=b"think").out == "thus\n"
    assert loaded[0].calls[0][1]["chat_template_kwargs"] is None
    assert run("chat", "--no-thinking", piped=b"a").code == 0
    assert loaded[1].calls[0][1]["chat_template_kwargs"] == {"enable_thinking": False}


def test_thinking_that_cannot_be_switched_off_is_an_error(run, loaded) -> None:
    done = run("chat", "--no-thinking", piped=b"a")
    assert (done.code, done.out) == (1, "")
    assert "the model's chat template has no switch for thinking" in done.err
    assert loaded[0].closed


@pytest.mark.parametrize("command", ["chat", "generate"])
def test_constraints_reach_the_library(run, loaded, tmp_path, command) -> None:
    schema, grammar = tmp_path / "s.json", tmp_path / "g.gbnf"
    schema.write_text('{"type": "null"}')
    grammar.write_text('root ::= "a"')
    words = [command, "m", "-p", "Hi"] if command == "chat" else [command, "m", "Hi"]
    for given, expected in (
        (["--regex", "a+"], {"regex": "a+"}),
        (["--choice", "a", "--choice", "b"], {"choices": ["a", "b"]}),
        (["--json-schema", str(schema)], {"schema": {"type": "null"}}),
        (["--grammar", str(grammar)], {"grammar": 'root ::= "a"'}),
    ):
        assert run(*words, *given).code == 0
        assert loaded[-1].calls[0][1].items() >= expected.items()
    done = run(*words, "--regex", "a", "--choice", "b")
    assert (done.code, "--regex and --choice exclude each other" in done.err) == (2, True)
    schema.write_text("[1]")
    assert "is no JSON schema" in run(*words, "--json-schema", str(schema)).err
    schema.write_text("{")
    assert "is no JSON" in run(*words, "--json-schema", str(schema)).err
    assert "--grammar takes the path" in run(*words, "--grammar", str(tmp_path / "none")).err


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_blocks_of_markdown_end_where_they_do(size: int) -> None:
    blocks, whole, raw = Blocks(), [], ""
    for start in range(0, len(MARKDOWN), size):
        for piece, block in blocks.push(MARKDOWN[start : start + size]):
            raw += piece
            whole += [] if block is None else [block]
    assert raw == MARKDOWN
    code = "```python\nx = 1\n\ny = 2\n```\n"
    assert [block for block in whole if block.strip()] == ["# Title\n\n", "Some **bold** words.\n\n", code]
    assert blocks.finish() == "1. one\n2. two"
