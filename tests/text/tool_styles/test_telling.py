"""Conversations with calls, in OpenAI's form, through templates that know tools and those that do not."""

from __future__ import annotations

import pytest

from halfbyte.errors import RequestError
from halfbyte.text import ChatTemplate

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": "x<b>"}'}}
USER = {"role": "user", "content": "hi"}
TALK = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "7"},
]
KNOWS = (
    "{% for m in messages %}[{{ m.role }}{% for t in m.tool_calls or [] %} {{ t.function.name }} {{ %s }}{% endfor %}"
    "{{ ' ' ~ m.name if m.name }}{{ ' ' ~ m.tool_call_id if m.tool_call_id }}:{{ m.content }}]{% endfor %}"
    "{{ (tools or []) | length }}"
)
OBJECTS = KNOWS.replace("%s", "t.function.arguments.a")
TEXTS = KNOWS.replace("%s", "'args ' + t.function.arguments")
TURNS = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"


def render(source: str, messages=TALK, **kwargs) -> str:
    return ChatTemplate(source, name="test").render(messages, **kwargs)


def test_arguments_are_objects_and_results_have_names():
    assert render(OBJECTS, tools=[TOOL]) == "[user:hi][assistant f x<b>:][tool f call_1:7]1"


def test_templates_that_want_arguments_as_text_get_them():
    assert render(TEXTS, tools=[TOOL]) == '[user:hi][assistant f args {"a": "x<b>"}:][tool f call_1:7]1'


def test_the_messages_of_the_caller_stay_as_they_are():
    render(OBJECTS, tools=[TOOL])
    assert CALL["function"]["arguments"] == '{"a": "x<b>"}'
    assert "name" not in TALK[2]


def test_ids_are_cut_to_what_a_template_takes():
    text = render(OBJECTS + "[TOOL_CALLS]")
    name, given = text.split("[tool ")[1].split(":")[0].split()
    assert name == "f"
    assert len(given) == 9
    assert given.isalnum()
    kept = [{**TALK[2], "tool_call_id": "abcdEFG12"}]
    assert "abcdEFG12" in render(OBJECTS + "[TOOL_CALLS]", [USER, *kept])


def test_tools_go_to_the_variable_that_a_template_has():
    assert render("{{ xml_tools | length }}", [USER], tools=[TOOL]) == "1"


def test_a_template_without_tools_is_told_in_words():
    text = render(TURNS, [*TALK, USER], tools=[TOOL])
    assert text.startswith("[system:You may call functions")
    assert '"name": "f"' in text
    assert '[assistant:<tool_call>\n{"name": "f", "arguments": {"a": "x<b>"}}\n</tool_call>]' in text
    assert text.endswith("[user:<tool_response>\n7\n</tool_response>\nhi]")


def test_words_go_into_the_system_message_there_is():
    text = render(TURNS, [{"role": "system", "content": "Be brief."}, USER], tools=[TOOL])
    assert text.startswith("[system:Be brief.\n\nYou may call")
    assert text.count("system") == 1


def test_words_go_into_the_question_where_there_may_be_no_system_message():
    source = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + TURNS
    )
    text = render(source + "<start_of_turn>", [USER], tools=[TOOL])
    assert text.startswith("[user:You have access")
    assert "hi]" in text


def test_without_tools_nothing_changes():
    assert render(TURNS, [USER]) == render(TURNS, [USER], tools=None) == render(TURNS, [USER], tools=[]) == "[user:hi]"


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([CALL | {"function": {"name": "f", "arguments": "{"}}], r"messages\[1\]\['tool_calls'\]\[0\] has arguments"),
        ([CALL | {"function": {"name": "f", "arguments": "[1]"}}], "no JSON object"),
        ([CALL | {"function": 5}], "has no name"),
        ([CALL | {"function": {"name": 5}}], "has no name"),
        ([CALL | {"id": []}], r"\['id'\] wants a string"),
        (["f"], "wants a list"),
        ("f", "wants a list"),
    ],
)
def test_malformed_calls_are_refused_by_place(calls, message):
    with pytest.raises(RequestError, match=message):
        render(OBJECTS, [USER, {"role": "assistant", "content": "", "tool_calls": calls}])


def test_tools_that_are_none_are_refused():
    with pytest.raises(RequestError, match="tools wants a list"):
        render(TURNS, [USER], tools=[5])


def test_templates_that_take_one_call_get_them_one_by_one():
    calls = [CALL, CALL | {"id": "call_2", "function": {"name": "g", "arguments": {"a": 2}}}]
    results = [TALK[2] | {"tool_call_id": call, "content": call} for call in ("call_2", "call_1")]
    talk = [USER, {"role": "assistant", "content": "So", "tool_calls": calls}, *results, USER]
    source = OBJECTS + "{{ raise_exception('This model only supports single tool-calls at once!') if false }}"
    assert render(source, talk) == (
        "[user:hi][assistant f x<b>:So][tool f call_1:call_1][assistant g 2:][tool g call_2:call_2][user:hi]0"
    )
