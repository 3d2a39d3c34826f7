"""`/v1/responses`, asked with OpenAI's own client."""

from __future__ import annotations

import asyncio
import json

import openai
import pydantic
import pytest

from halfbyte.server.served import Served
from tests.server.parrot import THINKS, parrot
from tests.server.running import running

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}


@pytest.fixture(scope="module")
def llm():
    with parrot(THINKS) as made:
        yield made


@pytest.fixture(scope="module")
def server(llm):
    with running(Served(llm, "parrot")) as made:
        yield made


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def ask(client, said, **more):
    return client.responses.create(**{"model": "parrot", "input": f"say «{said}»", "temperature": 0} | more)


def test_an_answer(client):
    done = ask(client, "Hello", instructions="Be brief.", metadata={"a": "b"})
    assert (done.output_text, done.status, done.model, done.object) == ("Hello", "completed", "parrot", "response")
    (item,) = done.output
    assert (item.type, item.role, item.status, item.content[0].type) == (
        "message",
        "assistant",
        "completed",
        "output_text",
    )
    assert (done.instructions, done.metadata, done.store) == ("Be brief.", {"a": "b"}, False)
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
    assert done.usage.output_tokens > 0


def test_an_answer_that_is_cut(client):
    done = ask(client, "Hello there, all of you", max_output_tokens=2)
    assert (done.status, done.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert done.output[0].status == "incomplete"
    assert "Hello there".startswith(done.output_text)


def test_a_stream_tells_the_whole_story(client):
    text = f"hm\n</think>\n\nSo: {CALL}"
    events = list(ask(client, text, stream=True, tools=[TOOL], extra_body=THINKING))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert events[0].response.output == []
    told = [kind for kind in kinds if not kind.endswith(".delta")][2:-1]
    text_part = ["response.output_item.added", "response.content_part.added"]
    ends = ["response.content_part.done", "response.output_item.done"]
    assert told == [
        *(*text_part, "response.reasoning_text.done", *ends),
        *(*text_part, "response.output_text.done", *ends),
        *("response.output_item.added", "response.function_call_arguments.done", "response.output_item.done"),
    ]
    reasoning, message, call = events[-1].response.output
    assert (reasoning.content[0].text, message.content[0].text) == ("hm", "So:")
    assert (call.name, call.arguments, call.status) == ("f", '{"a": 1}', "completed")
    deltas = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    assert deltas == call.arguments
    added = [event.item for event in events if event.type == "response.output_item.added"]
    assert [item.status for item in added] == ["in_progress"] * 3
    assert [item.content for item in added[:2]] == [[], []]
    assert added[2].arguments == ""
    assert events[-1].response.usage.output_tokens_details.reasoning_tokens > 0


def test_the_clients_own_reading_of_a_stream(client):
    with client.responses.stream(model="parrot", input=f"say «Well {CALL}»", tools=[TOOL], temperature=0) as stream:
        texts = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        done = stream.get_final_response()
    assert (texts, done.output_text) == ("Well", "Well")
    assert done.output[1].arguments == '{"a": 1}'


def test_the_whole_answer_equals_the_stream(client):
    whole = ask(client, f"Well {CALL}", tools=[TOOL])
    last = list(ask(client, f"Well {CALL}", tools=[TOOL], stream=True))[-1].response

    def plain(response):
        return [item.model_dump(exclude={"id", "call_id"}) for item in response.output]

    assert plain(whole) == plain(last)


def test_the_async_client(server):
    async def main():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            whole, stream = await asyncio.gather(ask(client, "one"), ask(client, "two", stream=True))
            return whole.output_text, [event async for event in stream][-1].response.output_text

    assert asyncio.run(main()) == ("one", "two")


def test_a_conversation_goes_on(client, llm):
    first = ask(client, f"hm</think>{CALL}", tools=[TOOL], extra_body=THINKING)
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "7"}
    items = [{"role": "user", "content": "x"}, *first.output, result, {"role": "developer", "content": "say «the end»"}]
    assert ask(client, "", input=items, tools=[TOOL]).output_text == "the end"
    parts = [{"type": "input_text", "text": "say «a"}, {"type": "input_text", "text": "b»"}]
    assert ask(client, "", input=[{"type": "message", "role": "user", "content": parts}]).output_text == "ab"


def test_a_required_call(client):
    schema = {"type": "object", "properties": {"a": {"const": 5}}, "required": ["a"], "additionalProperties": False}
    tool = TOOL | {"name": "five", "parameters": schema, "strict": True}
    choice = {"type": "function", "name": "five"}
    (call,) = ask(client, "no", tools=[TOOL, tool], tool_choice=choice).output
    assert (call.name, json.loads(call.arguments)) == ("five", {"a": 5})


def test_a_form_and_the_clients_own_parsing(client):
    class Answer(pydantic.BaseModel):
        word: str

    done = client.responses.parse(model="parrot", input='say «{"word": "hi"}»', text_format=Answer, temperature=0)
    assert done.output_parsed == Answer(word="hi")
    form = {"format": {"type": "json_schema", "name": "s", "schema": {"enum": ["yes"]}}}
    assert ask(client, "no", text=form).output_text == '"yes"'
    assert ask(client, "any", text={"format": {"type": "text"}}).output_text == "any"


def test_logprobs(client):
    done = ask(client, "Hello", include=["message.output_text.logprobs"], top_logprobs=2)
    logprobs = done.output[0].content[0].logprobs
    assert "".join(one.token for one in logprobs) == "Hello"
    assert all(len(one.top_logprobs) == 2 for one in logprobs)
    events = list(ask(client, "Hello", include=["message.output_text.logprobs"], stream=True))
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert [one.token for event in deltas for one in event.logprobs] == [one.token for one in logprobs]


def test_no_words_are_an_empty_message(client):
    assert ask(client, "").output[0].content[0].text == ""


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"input": [{"role": "user", "content": "x", "extra": 1}]}, "input[0].extra"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"include": ["everything"]}, "include"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"reasoning": {"effort": "endless"}}, "reasoning.effort"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": {"type": "function", "name": "g"}, "tools": [TOOL]}, "tool_choice"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"extra_body": {"nonsense": 1}}, "nonsense"),
    ],
)
def test_mistakes_name_their_field(client, more, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, "x", **more)
    assert caught.value.param == param


def test_an_error_within_a_stream_reaches_the_client(client):
    with pytest.raises(openai.APIError, match=r"timeout=0\.05"):
        list(ask(client, "x" * 3000, stream=True, extra_body={"timeout": 0.05}))
