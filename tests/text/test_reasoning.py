"""Thinking parted from answers, however the text is cut into pieces."""

from __future__ import annotations

import pytest

from halfbyte.text import ChatTemplate, Detokenizer, build_tokenizer
from halfbyte.text.reasoning import Reasoning, find_reasoning
from halfbyte.text.thinking_marks import THINKING_MARKS
from tests.text.tiny_vocabularies import byte_bpe

THINK = Reasoning(THINKING_MARKS["think"])
GRANITE = Reasoning(THINKING_MARKS["granite"])
CHANNELS = Reasoning(None)
CALL = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"


def split(reasoning: Reasoning, text: str, prompt: str = "", size: int = 1) -> dict[str, str]:
    splitter = reasoning.splitter(prompt)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    parts = [part for piece in pieces for part in splitter.push(piece)] + splitter.finish()
    assert all(text for _, text in parts)
    assert [kind for kind, _ in parts] == sorted((kind for kind, _ in parts), reverse=True) or reasoning is CHANNELS
    return {kind: "".join(text for k, text in parts if k == kind) for kind, _ in parts}


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "prompt", "thinking", "answer"),
    [
        ("<think>\nso\n\nwell\n</think>\n\nyes <b>", "", "so\n\nwell", "yes <b>"),
        ("\n<think>so</think>yes", "", "so", "yes"),
        ("so\n</think>\n\nyes", "assistant\n<think>\n", "so", "yes"),
        ("yes", "<think>\n\n</think>\n\n", "", "yes"),
        ("yes", "<think> is what I say<|im_end|>", "", "yes"),
        ("<think>\n\n</think>\n\nyes", "", "", "yes"),
        ("<think>a</think>\n<think>b</think>yes", "", "ab", "yes"),
        ("say <think>x</think>", "", "", "say <think>x</think>"),
        ("no </think> yes", "", "", "no </think> yes"),
        ("  <thin is good", "", "", "  <thin is good"),
        ("<think>cut </thi", "", "cut </thi", ""),
        ("<think>a </think b </think>c", "", "a </think b", "c"),
        ("<thi", "", "", "<thi"),
        ("<think>", "", "", ""),
        ("  \n", "", "", "  \n"),
        ("<think>a</think>yes\n ", "", "a", "yes\n "),
    ],
)
def test_marks_part_thinking_from_answer(text: str, prompt: str, thinking: str, answer: str, size: int) -> None:
    found = split(THINK, text, prompt, size)
    assert (found.get("thinking", ""), found.get("answer", "")) == (thinking, answer)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>a</think><response>yes</response>", "a", "yes"),
        ("<think>a</think>\n<response>\nyes </response> no\n</response>\n", "a", "yes </response> no"),
        ("<response>yes </respo", "", "yes </respo"),
        ("plain", "", "plain"),
    ],
)
def test_answers_with_marks_of_their_own_lose_them(text: str, thinking: str, answer: str, size: int) -> None:
    found = split(GRANITE, text, size=size)
    assert (found.get("thinking", ""), found.get("answer", "")) == (thinking, answer)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>final<|message|>yes", "a < b", "yes"),
        ("<|channel|>final<|message|> yes <|e", "", " yes <|e"),
        (f"<|channel|>analysis<|message|>a<|end|><|start|>assistant{CALL}{{}}", "a", f"<|start|>assistant{CALL}{{}}"),
        ("no header at all", "", "no header at all"),
        ("<|channel|>final", "", "<|channel|>final"),
        ("<|channel|>" + "x" * 600, "", "<|channel|>" + "x" * 600),
    ],
)
def test_channels_part_thinking_from_answer(text: str, thinking: str, answer: str, size: int) -> None:
    found = split(CHANNELS, text, size=size)
    assert (found.get("thinking", ""), found.get("answer", "")) == (thinking, answer)


def test_text_is_handed_on_at_once() -> None:
    splitter = THINK.splitter("")
    assert splitter.push("<think>\n") == []
    assert splitter.push("so it ") == [("thinking", "so it")]
    assert splitter.push("is</think>y") == [("thinking", " is"), ("answer", "y")]
    assert splitter.push(" es ") == [("answer", " es ")]


@pytest.mark.parametrize(
    ("source", "opens", "off"),
    [
        (
            "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}",
            "<think>",
            {"enable_thinking": False},
        ),
        (
            "{% if not thinking is defined %}{% set thinking = false %}{% endif %}<think>",
            "<think>",
            {"thinking": False},
        ),
        ("{% set thinking = messages[0].thinking %}{{ thinking }}[THINK]", "[THINK]", {}),
        ("<think></think><response></response>{% if thinking %}{% endif %}", "<think>", {"thinking": False}),
        ("<seed:think>{{ thinking_budget }}", "<seed:think>", {"thinking_budget": 0}),
    ],
)
def test_a_template_shows_marks_and_the_switch(source: str, opens: str, off: dict[str, object]) -> None:
    found = ChatTemplate(source, name="test").reasoning
    assert found is not None
    assert found.marks is not None
    assert (found.marks.opens, found.off) == (opens, off)


def test_templates_of_models_that_do_not_think() -> None:
    assert ChatTemplate("{{ messages }}{{ enable_thinking }}", name="test").reasoning is None


def test_channels_are_found_and_have_no_switch() -> None:
    found = find_reasoning("<|channel|>analysis<|message|>", ["reasoning_effort"])
    assert found is not None
    assert (found.marks, found.off) == (None, {})
    assert "<|message|>" in found.spelled


def test_control_tokens_are_spelt_where_asked_for() -> None:
    tokenizer = build_tokenizer(byte_bpe())
    control = tokenizer.vocabulary.control_texts[-1]
    ids = [*tokenizer.encode("hi", bos=False), tokenizer.vocabulary.ids[control]]

    def text(*spelled: str) -> str:
        pieces = Detokenizer(tokenizer, spelled=spelled)
        return "".join(map(pieces.push, ids)) + pieces.finish()

    assert text() == text("<nothing>") == "hi"
    assert text(control) == f"hi{control}"
