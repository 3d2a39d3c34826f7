"""Calls of tools in what models write, however it is cut into pieces."""

from __future__ import annotations

import json
import random

import pytest

from halfbyte.text.tool_styles import TOOL_STYLES, Call, CallArguments, CallEnd, CallStart, Content, find_tool_style
from tests.text.tool_styles.examples import CALLS, TEXTS

TOOLS = {
    "f": {"type": "object", "properties": {"a": {"type": "integer"}, "s": {"type": "string"}}},
    "get-it": {"type": "object"},
}


def parse(style: str, text: str, size: int = 1) -> tuple[str, list[tuple[str, str]]]:
    parser = TOOL_STYLES[style].parser(TOOLS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return collect([delta for piece in pieces for delta in parser.push(piece)] + parser.finish())


def collect(deltas) -> tuple[str, list[tuple[str, str]]]:
    """Content, and names with arguments; the order of parts is checked on the way."""
    content, calls, open_call = "", [], False
    for delta in deltas:
        if isinstance(delta, Content):
            assert delta.text
            assert not open_call
            content += delta.text
        elif isinstance(delta, CallStart):
            assert not open_call
            open_call = True
            calls.append((delta.name, ""))
        elif isinstance(delta, CallArguments):
            assert open_call
            assert delta.text
            calls[-1] = (calls[-1][0], calls[-1][1] + delta.text)
        else:
            assert isinstance(delta, CallEnd)
            assert open_call
            open_call = False
    assert not open_call
    return content, calls


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(("style", "text", "content", "calls"), CALLS)
def test_calls_are_found(style, text, content, calls, size):
    if calls is None:  # a name that is none in Python
        assert parse(style, text, size) == (text, [])
        return
    found_content, found = parse(style, text, size)
    assert found_content == content
    assert [(name, json.loads(arguments)) for name, arguments in found] == calls


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(("style", "text"), TEXTS)
def test_what_is_no_call_is_text_unchanged(style, text, size):
    assert parse(style, text, size) == (text, [])


def test_a_cut_call_keeps_what_there_is():
    assert parse("hermes", '<tool_call>{"name": "f", "arguments": {"s": "so fa') == ("", [("f", '{"s": "so fa')])


def test_arguments_are_as_the_model_wrote_them():
    text = '{"a":1 , "s" : nonsense}'
    assert parse("hermes", f'<tool_call>{{"name": "f", "arguments": {text}}}</tool_call>x') == ("x", [("f", text)])


def test_arguments_come_while_they_are_written():
    parser = TOOL_STYLES["hermes"].parser(TOOLS)
    assert parser.push('Hi <tool_call>{"name": "f", "arguments"') == [Content("Hi")]
    assert parser.push(': {"s": "a') == [CallStart("f"), CallArguments('{"s": "a')]
    assert parser.push("b") == [CallArguments("b")]
    assert parser.push('"}') == [CallArguments('"}'), CallEnd()]
    assert parser.push("}\n</tool_call>") == []
    assert parser.finish() == []


def test_content_is_not_held_back():
    parser = TOOL_STYLES["llama3"].parser(TOOLS)
    assert [parser.push(piece) for piece in ("I ", "will {", "x}")] == [
        [Content("I")],
        [Content(" will {")],
        [Content("x}")],
    ]


def test_long_arguments_take_time_in_proportion():
    parser = TOOL_STYLES["hermes"].parser(TOOLS)
    pieces = ['<tool_call>{"name": "f", "arguments": {"s": "', *["word "] * 20_000, '"}}</tool_call>']
    content, calls = collect([delta for piece in pieces for delta in parser.push(piece)] + parser.finish())
    assert (content, len(calls[0][1])) == ("", 100_000 + len('{"s": ""}'))


@pytest.mark.parametrize("style", TOOL_STYLES)
def test_any_text_can_be_cut_anywhere(style):
    random.seed(style)
    texts = [text for name, text, *_ in CALLS + TEXTS if name == style]
    for _ in range(60):
        text = "".join(piece[random.randrange(len(piece)) :] for piece in random.choices(texts, k=3))
        assert parse(style, text, 1) == parse(style, text, 3) == parse(style, text, len(text) or 1)


@pytest.mark.parametrize("style", [name for name in TOOL_STYLES if TOOL_STYLES[name].spelling.form == "json"])
def test_a_style_reads_what_it_writes(style):
    calls = [Call("f", '{"a": 1}'), Call("get-it", '{"s": "}"}')]
    assert parse(style, TOOL_STYLES[style].spelling.write(calls)) == ("", [tuple(call) for call in calls])


@pytest.mark.parametrize(
    ("source", "variables", "found"),
    [
        ("<tool_call>", ["tools"], ("hermes", "tools")),
        ("<|im_start|>", [], ("hermes", None)),
        ("<|im_start|>", ["tools"], ("hermes", "tools")),
        ("<tool_call>", ["xml_tools"], ("hermes", "xml_tools")),
        ("<tool_call>\n<function=", ["tools"], ("qwen-coder", "tools")),
        ("<|start_header_id|>", ["tools"], ("llama3", "tools")),
        ("<|start_header_id|>", [], ("llama3", None)),
        ("[TOOL_CALLS]", ["tools"], ("mistral", "tools")),
        ("[TOOL_CALLS]name[ARGS]", ["tools"], ("mistral-named", "tools")),
        ("[INST]", [], ("hermes", None)),
        ("<start_of_turn>", [], ("gemma", None)),
        ("<start_of_turn><start_function_call>", ["tools"], ("function-gemma", "tools")),
        ("<|tool_call>call:", ["tools"], ("gemma4", "tools")),
        ("<|channel|>", ["tools"], ("harmony", "tools")),
        ("<|tool_call|>[", ["tools"], ("granite", "tools")),
        ("<|tool_call|><|/tool_call|>", ["tools"], ("phi4", "tools")),
    ],
)  # fmt: skip
def test_a_template_shows_its_style(source, variables, found):
    style, variable = find_tool_style(source, variables)
    assert (style.name, variable) == found


def test_styles_are_named_as_in_the_table():
    assert [TOOL_STYLES[name].name for name in TOOL_STYLES] == list(TOOL_STYLES)
