"""Answers of a form, asked for with OpenAI's own client."""

from __future__ import annotations

import json
from typing import Literal

import openai
import pydantic
import pytest

import halfbyte
from halfbyte.server import Served
from tests.model.tiny import tiny_model
from tests.server.running import running

MESSAGES = [{"role": "user", "content": "the cat"}]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "legs": {"type": "integer", "minimum": 2, "maximum": 4}},
    "required": ["name", "legs"],
    "additionalProperties": False,
}


class Animal(pydantic.BaseModel):
    kind: Literal["cat", "dog"]
    legs: Literal[2, 4]


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    path = tiny_model(tmp_path_factory.mktemp("tiny"))
    with halfbyte.load(path, backend="reference", context=200) as made:
        yield made


@pytest.fixture(scope="module")
def client(llm):
    with (
        running(Served(llm, "tiny")) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made,
    ):
        yield made


def asked(client, response_format=openai.omit, **more):
    ask = {"model": "tiny", "messages": MESSAGES, "temperature": 1.5, "seed": 3, "max_tokens": 120} | more
    return client.chat.completions.create(**ask, response_format=response_format)


def wanted(schema):
    return {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": schema}}


def test_an_answer_follows_its_schema(client):
    done = asked(client, wanted(SCHEMA), n=3)
    for choice in done.choices:
        animal = json.loads(choice.message.content)
        assert animal.keys() == {"name", "legs"}
        assert 2 <= animal["legs"] <= 4
        assert len(animal["name"]) <= 5
        assert choice.finish_reason == "stop"


def test_a_stream_follows_it_too(client):
    chunks = client.chat.completions.create(
        model="tiny", messages=MESSAGES, temperature=1, max_tokens=120, stream=True, response_format=wanted(SCHEMA)
    )
    assert json.loads("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)).keys()


def test_the_client_parses_into_its_own_class(client):
    done = client.chat.completions.parse(model="tiny", messages=MESSAGES, max_tokens=120, response_format=Animal)
    assert isinstance(done.choices[0].message.parsed, Animal)


def test_any_object_and_any_text(client, llm):
    close = str(llm.tokenize("}")[-1])
    done = asked(client, {"type": "json_object"}, logit_bias={close: 100})
    assert json.loads(done.choices[0].message.content) == {}
    assert asked(client, {"type": "text"}, max_tokens=5).usage.completion_tokens <= 5


def test_other_forms_are_fields_of_ours(client):
    def content(**extra):
        return asked(client, extra_body=extra).choices[0].message.content

    assert content(choices=["yes", "no"]) in ("yes", "no")
    assert content(regex="[ab]{3}c").removesuffix("c") in {a + b + c for a in "ab" for b in "ab" for c in "ab"}
    assert content(grammar='root ::= "x" [0-9] "y"')[::2] == "xy"
    text = client.completions.create(model="tiny", prompt="the", extra_body={"choices": ["cat", "dog"]}).choices[0].text
    assert text in ("cat", "dog")


PLACE = "response_format.json_schema.schema"


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ({}, "response_format.type"),
        ({"type": "xml"}, "response_format.type"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {"schema": {}}}, "response_format.json_schema.name"),
        ({"type": "json_schema", "json_schema": {"name": "a"}}, PLACE),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": []}}, PLACE),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "more": 1}},
            "response_format.json_schema.more",
        ),
        (wanted({"not": {}}), PLACE),
        (wanted({"type": "object", "properties": {"a": {"if": {}}}}), PLACE),
        (wanted({"type": "nonsense"}), PLACE),
        (wanted({"type": "string", "pattern": "("}), PLACE),
        (wanted({"$ref": "#/nowhere"}), PLACE),
        (wanted({"properties": 4}), PLACE),
        (wanted({"type": "string", "format": "postcode"}), PLACE),
    ],
)
def test_a_form_that_cannot_be_is_refused_by_name(client, form, param):
    with pytest.raises(openai.BadRequestError) as caught:
        asked(client, form)
    assert caught.value.param == param


@pytest.mark.parametrize("field", [{"regex": "("}, {"choices": []}, {"choices": "ab"}, {"grammar": "root ::= nothing"}])
def test_so_are_ours(client, field):
    with pytest.raises(openai.BadRequestError) as caught:
        asked(client, extra_body=field)
    assert caught.value.param == next(iter(field))
    with pytest.raises(openai.BadRequestError, match="not both"):
        asked(client, wanted(SCHEMA), extra_body={"regex": "a"})
