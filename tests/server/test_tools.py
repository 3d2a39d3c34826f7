"""Calls of tools in chat completions, with OpenAI's own client."""

from __future__ import annotations

import json

import openai
import pytest

from halfbyte.server.served import Served
from tests.server.parrot import CHATML, THINKS, parrot, say
from tests.server.running import running

TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "A function",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
OTHER = {"type": "function", "function": {"name": "g"}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.fixture(scope="module")
def clients():
    """One for each of some templates."""
    mistral = CHATML.replace("<tool_call>", "[TOOL_CALLS]").replace("</tool_call>", "")
    kinds = {"hermes": (CHATML,), "mistral": (mistral, ("[TOOL_CALLS]", "[ARGS]")), "thinks": (THINKS,)}
    made, stack = {}, []
    for name, kind in kinds.items():
        llm = parrot(*kind)
        server = running(Served(llm, "parrot"))
        made[name] = openai.OpenAI(base_url=f"{server.__enter__().url}/v1", api_key="none", max_retries=0)
        stack += [made[name].close, lambda server=server: server.__exit__(None, None, None), llm.close]
    yield made
    for close in stack:
        close()


@pytest.fixture
def client(clients):
    return clients["hermes"]


def ask(client, text, *before, **more):
    more = {"model": "parrot", "tools": [TOOL, OTHER], "temperature": 0, "extra_body": {}} | more
    return client.chat.completions.create(messages=say(text, *before), **more)


def streamed(client, text, **more):
    """Content, thinking, and calls as name and arguments; ids must be given once."""
    content, thinking, calls, ids, reason = "", "", {}, [], None
    for chunk in ask(client, text, stream=True, **more):
        choice = chunk.choices[0]
        content += choice.delta.content or ""
        thinking += getattr(choice.delta, "reasoning_content", None) or ""
        reason = choice.finish_reason or reason
        for call in choice.delta.tool_calls or []:
            if call.id:
                assert call.index not in calls
                ids.append(call.id)
                calls[call.index] = [call.function.name, ""]
            calls[call.index][1] += call.function.arguments
    assert len(set(ids)) == len(ids) == len(calls)
    return content, thinking, [tuple(calls[index]) for index in sorted(calls)], reason


def test_a_call(client):
    choice = ask(client, "Well.\n" + CALL).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Well."
    (call,) = choice.message.tool_calls
    assert (call.type, call.function.name, json.loads(call.function.arguments)) == ("function", "f", {"a": 1})
    assert call.id.startswith("call_")


def test_only_a_call_has_no_content(client):
    assert ask(client, CALL).choices[0].message.content is None


def test_calls_are_streamed(client):
    second = CALL.replace('"f"', '"g"').replace("1", '"text in pieces"')
    found = streamed(client, f"So:\n{CALL}\n{second}")
    assert found == ("So:", "", [("f", '{"a": 1}'), ("g", '{"a": "text in pieces"}')], "tool_calls")


@pytest.mark.parametrize("text", ["Hello <tool_call> x", CALL.replace("f", "nothing"), CALL[:-20] + "] </tool_call> "])
def test_what_is_no_call_is_content(client, text):
    done = ask(client, text).choices[0]
    if done.message.tool_calls is None:
        assert (done.message.content, done.finish_reason) == (text, "stop")
    assert streamed(client, text)[0] == (done.message.content or "")


def test_without_tools_nothing_is_parsed(client):
    for more in ({"tools": openai.NOT_GIVEN}, {"tool_choice": "none"}):
        assert ask(client, CALL, **more).choices[0].message.content == CALL


def test_a_result_goes_back(client):
    before = say("x")
    call = ask(client, CALL).choices[0].message
    assert call.tool_calls
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "7"}
    done = ask(client, "the end", *before, call, result)
    assert done.choices[0].message.content == "the end"


def test_control_tokens_of_calls_are_seen(clients):
    client = clients["mistral"]
    found = streamed(client, 'Go[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]')
    assert found == ("Go", "", [("f", '{"a": 1}')], "tool_calls")
    call = ask(client, '[TOOL_CALLS]f[ARGS]{"a": 2}').choices[0].message.tool_calls[0]
    assert (len(call.id), call.function.arguments) == (9, '{"a": 2}')
    assert ask(client, "a[ARGS]b", tools=openai.NOT_GIVEN).choices[0].message.content == "ab"


def test_thinking_is_apart(clients):
    client = clients["thinks"]
    text = f"I {CALL} think\n</think>\n\nSo.{CALL}"
    thinks = {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}
    found = streamed(client, text, **thinks)
    assert found == ("So.", f"I {CALL} think", [("f", '{"a": 1}')], "tool_calls")
    done = ask(client, text, **thinks)
    assert 0 < done.usage.completion_tokens_details.reasoning_tokens < done.usage.completion_tokens
    message = done.choices[0].message
    assert (message.content, message.reasoning_content) == ("So.", f"I {CALL} think")
    assert ask(client, "Plain", reasoning_effort="none").choices[0].message.content == "Plain"
    assert ask(client, "cut", **thinks).choices[0].message.content == ""


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": "f"}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f", "other": 1}}]}, "tools[0].function.other"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"tools": [TOOL["function"]]}, "tools[0].type"),
        ({"tools": openai.NOT_GIVEN, "functions": [TOOL["function"]]}, "functions"),
        ({"tool_choice": "often"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "h"}}}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function.name"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}}}, "tool_choice.allowed_tools.tools"),
        ({"tools": openai.NOT_GIVEN, "tool_choice": "required"}, "tool_choice"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"reasoning_effort": "endless"}, "reasoning_effort"),
    ],
)
def test_mistakes_name_their_field(client, more, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, "x", **more)
    assert caught.value.param == param
    assert "NoneType" not in str(caught.value)


def test_malformed_messages_are_the_clients_mistake(client):
    bad = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{"}}]}
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\].*no JSON object"):
        ask(client, "x", bad)


STRICT = {"type": "function", "function": {**TOOL["function"], "strict": True}}
ENUM = {
    "type": "function",
    "function": {
        "name": "pick",
        "parameters": {
            "type": "object",
            "properties": {"a": {"enum": ["only this"]}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "pick"}}])
def test_a_required_call_comes_whatever_the_model_would_say(client, choice):
    tools = [ENUM] if choice == "required" else [TOOL, ENUM]
    found = streamed(client, "I would rather not.", tools=tools, tool_choice=choice, parallel_tool_calls=False)
    assert found == ("", "", [("pick", '{"a": "only this"}')], "tool_calls")


def test_a_required_call_comes_behind_thinking(clients):
    for on in (True, False):
        more = {"extra_body": {"chat_template_kwargs": {"enable_thinking": on}}, "tool_choice": "required"}
        text = "hm.</think>No" if on else "No"
        found = streamed(clients["thinks"], text, tools=[ENUM], parallel_tool_calls=False, **more)
        assert found == ("", "hm." if on else "", [("pick", '{"a": "only this"}')], "tool_calls")


def test_allowed_tools_are_the_only_ones(client):
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "pick"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    done = ask(client, CALL, tools=[TOOL, ENUM], tool_choice=choice, parallel_tool_calls=False)
    assert done.choices[0].message.tool_calls[0].function.name == "pick"


def test_strict_tools_keep_to_their_schema(client):
    wrong = CALL.replace("1", '"one"')
    assert streamed(client, wrong)[2] == [("f", '{"a": "one"}')]
    (call,) = ask(client, f"Well {wrong}", tools=[STRICT], max_tokens=60).choices[0].message.tool_calls
    assert call.function.arguments.startswith('{"a": ')
    assert not call.function.arguments.startswith('{"a": "')
    assert ask(client, "Just text", tools=[STRICT]).choices[0].message.content == "Just text"


def test_a_form_of_the_answer_leaves_room_for_calls(client):
    schema = {"name": "s", "schema": {"enum": ["yes"]}}
    form = {"response_format": {"type": "json_schema", "json_schema": schema}}
    assert ask(client, "no", **form).choices[0].message.content == '"yes"'
    assert ask(client, CALL, **form).choices[0].message.tool_calls[0].function.name == "f"


def test_a_form_of_the_answer_comes_behind_thinking(clients):
    form = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"enum": ["yes"]}}}}
    thinks = {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}, "tools": openai.NOT_GIVEN}
    message = ask(clients["thinks"], "so </think>no", **form, **thinks).choices[0].message
    assert (message.reasoning_content, message.content) == ("so", '"yes"')


def test_a_schema_that_is_not_understood_is_refused_where_it_counts(client):
    odd = {"type": "object", "properties": {"a": {"type": "integer", "uniqueItems": True}}}
    loose = {"type": "function", "function": {"name": "f", "parameters": odd}}
    strict = {"type": "function", "function": {"name": "f", "parameters": odd, "strict": True}}
    assert ask(client, CALL, tools=[loose], tool_choice="required").choices[0].message.tool_calls
    with pytest.raises(openai.BadRequestError, match=r"'f'.*'uniqueItems' at /properties/a") as caught:
        ask(client, CALL, tools=[strict])
    assert caught.value.param == "tools.f.parameters"
    with pytest.raises(openai.BadRequestError, match="leave out one"):
        ask(client, CALL, tool_choice="required", response_format={"type": "json_object"})


def test_schemas_that_are_none_are_the_clients_mistake(client):
    tool = {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": 5}}}},
    }
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, CALL, tools=[tool], tool_choice="required")
    assert caught.value.param in ("tools", "tools.f.parameters")


def test_one_call_where_several_are_not_wanted(client):
    found = streamed(client, f"{CALL}\n{CALL}", parallel_tool_calls=False)
    assert found[2] == [("f", '{"a": 1}')]


def test_tokens_of_a_conversation_with_tools(client):
    def count(**more):
        return client.post("/../tokenize", body={"messages": say("x"), **more}, cast_to=object)["count"]

    assert count(tools=[TOOL]) > count() == count(tools=[TOOL], tool_choice="none")
