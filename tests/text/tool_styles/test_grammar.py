"""Grammars that make answers call tools, as the engine understands them."""

from __future__ import annotations

from functools import cache

import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.runtime.constraint.compiler import Compiler
from halfbyte.runtime.constraint.wish import Constraint
from halfbyte.text import build_tokenizer
from halfbyte.text.reasoning import Reasoning
from halfbyte.text.thinking_marks import THINKING_MARKS
from halfbyte.text.tool_styles import TOOL_STYLES, Call
from halfbyte.text.tool_styles.grammar import call_grammar, form_grammar, whole_grammar
from tests.text.tiny_vocabularies import byte_bpe

SCHEMAS = {
    "f": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "g": {"type": "object"},
}
PLAIN = ("<tool_call>", "</tool_call>")
"""No control tokens in this vocabulary, as in Qwen's."""
WRITTEN = {
    "qwen-coder": "<tool_call>\n<function=f>\n<parameter=a>\n3\n</parameter>\n</function>\n</tool_call>",
    "function-gemma": "<start_function_call>call:f{a:3,s:<escape>x<escape>}<end_function_call>",
    "gemma4": '<|tool_call>call:f{a:3,s:<|"|>x<|"|>}<tool_call|>',
    "lfm2": '<|tool_call_start|>[f(a=3, s="x")]<|tool_call_end|>',
}
TWICE = {"lfm2": "<|tool_call_start|>[f(a=3), g()]<|tool_call_end|>"}


@cache
def compiler():
    metadata = byte_bpe()
    # Without <|return|> the token <|end|> would end an answer.
    control = {text for name in TOOL_STYLES for text in TOOL_STYLES[name].spelled} - set(PLAIN)
    control |= {"<|return|>", "<|call|>"}
    metadata["tokenizer.ggml.tokens"] += sorted(control)
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], *[3] * len(control)]
    tokenizer = build_tokenizer(metadata)
    return tokenizer, Compiler(tokenizer)


def control(text: str) -> int | None:
    tokenizer, _ = compiler()
    token = tokenizer.vocabulary.ids.get(text)
    return token if token is not None and not tokenizer.token_bytes(token) else None


def fits(grammar: str, text: str) -> bool:
    """Whether an answer may be `text`."""
    tokenizer, compiled = compiler()
    matcher = compiled.compile(Constraint("lark", grammar)).matcher()
    for token in tokenizer.encode(text, special=True, bos=False):
        if token not in matcher.mask().ids:
            return False
        matcher.accept(token)
    return not tokenizer.eog_ids.isdisjoint(matcher.mask().ids.tolist())


def written(name: str) -> tuple[str, str]:
    """A call and two calls."""
    style = TOOL_STYLES[name]
    if style.spelling.form == "json":
        return tuple(style.spelling.write([Call("f", '{"a": 3}'), Call("g", '{"x": []}')][:n]) for n in (1, 2))
    return WRITTEN[name], TWICE.get(name, WRITTEN[name] + style.spelling.between + WRITTEN[name])


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("name", TOOL_STYLES)
def test_calls_as_a_model_writes_them(name, required, parallel):
    style = TOOL_STYLES[name]
    body = call_grammar(style, SCHEMAS, required=required, parallel=parallel, control=control)
    grammar = whole_grammar({"calls": body}, None, False, control)
    one, two = written(name)
    assert fits(grammar, one)
    assert fits(grammar, two) == (parallel or (name == "harmony" and not required))
    assert fits(grammar, "no call") == (not required)
    bare = '{"name": "f", "arguments": {"a": 1}}'
    assert fits(grammar, bare.replace("1", "true")) == (not required and not style.frame.bare)
    assert fits(grammar, bare) == (not required and (name == "hermes" or not style.frame.bare))
    named = one.replace("f", "zz") if name in ("llama3", "hermes", "gemma", "mistral") else None
    assert named is None or not fits(grammar, named)
    if style.spelling.form == "json":
        assert not fits(grammar, one.replace("3", "true"))
        assert not fits(grammar, one.replace('"a"', '"b"'))


@pytest.mark.parametrize("name", [name for name in TOOL_STYLES if TOOL_STYLES[name].frame.opens and name != "gemma"])
def test_text_may_come_before_a_call_that_is_not_required(name):
    body = call_grammar(TOOL_STYLES[name], SCHEMAS, required=False, parallel=True, control=control)
    call = written(name)[0]
    if TOOL_STYLES[name].frame.bare:
        return
    assert fits("start: calls\n" + body, f"Let me see. {call}")


@pytest.mark.parametrize(("opened", "text"), [(True, "hm {} </think>\n"), (False, "<think>hm</think>"), (False, "")])
def test_thinking_comes_first(opened, text):
    call = written("hermes")[0]
    body = call_grammar(TOOL_STYLES["hermes"], SCHEMAS, required=True, parallel=True, control=control)
    grammar = whole_grammar({"calls": body}, Reasoning(THINKING_MARKS["think"]), opened, control)
    assert fits(grammar, text + call)
    assert not fits(grammar, text + "hm")
    assert opened != fits(grammar, call)


def test_thinking_on_a_channel_comes_first():
    call = written("harmony")[0]
    body = call_grammar(TOOL_STYLES["harmony"], SCHEMAS, required=True, parallel=True, control=control)
    grammar = whole_grammar({"calls": body}, Reasoning(None), False, control)
    assert fits(grammar, f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant{call}")
    assert fits(grammar, call)
    assert not fits(grammar, "<|channel|>analysis<|message|>hm<|end|>")


def test_messages_on_channels_are_no_calls():
    body = call_grammar(TOOL_STYLES["harmony"], SCHEMAS, required=False, parallel=True, control=control)
    assert fits("start: calls\n" + body, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final")


@pytest.mark.parametrize(
    ("name", "value", "good", "bad"),
    [
        ("schema", SCHEMAS["f"], '{"a": 1}', '{"b": 1}'),
        ("choices", ["yes", 'n"o'], 'n"o', "no"),
        ("regex", r"a/b\/c\\/[0-9]", "a/b/c\\/7", "a/b/c/7"),
    ],
)
def test_a_form_beside_calls_and_behind_thinking(name, value, good, bad):
    calls = call_grammar(TOOL_STYLES["hermes"], SCHEMAS, required=True, parallel=True, control=control)
    rules = {"calls": calls, "form": form_grammar(name, value)}
    grammar = whole_grammar(rules, Reasoning(THINKING_MARKS["think"]), True, control)
    assert fits(grammar, f"so</think>{good}")
    assert fits(grammar, f"so</think>{written('hermes')[0]}")
    assert not fits(grammar, good)
    assert not fits(grammar, f"so</think>{bad}")


def test_a_grammar_of_ones_own_goes_alone():
    with pytest.raises(UnsupportedError, match="grammar goes neither"):
        form_grammar("grammar", "root ::= x")
