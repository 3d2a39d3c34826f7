"""Answers of a model under constraints: they hold, and how an answer is computed changes nothing."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

import halfbyte
from halfbyte.errors import ConfigError, IncompleteAnswerError, RequestError, UnsupportedError
from halfbyte.runtime.constraint import mask
from halfbyte.runtime.constraint.wish import Lark

POINT = {
    "type": "object",
    "properties": {"horizontal": {"type": "integer"}, "vertical": {"enum": ["up", "down"]}},
    "required": ["horizontal", "vertical"],
    "additionalProperties": False,
}
WISHES = {
    "regex": {"regex": r"[a-c]{3,9}(-[0-9]+)?;"},
    "schema": {"schema": POINT},
    "choices": {"choices": ["then", "the thing", "théâtre"]},
    "grammar": {"grammar": 'root ::= item ("," item)*\nitem ::= [0-9] | "(" root ")"'},
}
SAMPLERS = [
    {},
    {"temperature": 1.5, "top_k": 0},
    {"temperature": 1.0, "top_p": 0.8, "min_p": 0.01, "top_k": 7},
    {"repeat_penalty": 1.7, "temperature": 0.9},
    {"mirostat": 2, "temperature": 1.0},
    {"logit_bias": {97: 5.0, 98: -3.0}},
    {"dry_multiplier": 1.0, "temperature": 1.0, "typical_p": 0.7},
]


class Side(Enum):
    LEFT = "left"
    RIGHT = "right"


class Turn(BaseModel):
    side: Side
    degrees: int = Field(ge=0, le=360)


def holds(wish, text):
    if "regex" in wish:
        return re.fullmatch(wish["regex"], text)
    if "choices" in wish:
        return text in wish["choices"]
    if "schema" in wish:
        return set(json.loads(text)) == {"horizontal", "vertical"}
    return re.fullmatch(r"[0-9(),]+", text) and text.count("(") == text.count(")")


@pytest.mark.parametrize("params", SAMPLERS, ids=str)
@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_every_answer_that_ends_is_what_was_wished(llm, wish, params):
    for seed in range(3):
        answer = llm.generate("the thing", **wish, **params, seed=seed, max_tokens=60)
        assert answer.text == llm.detokenize(answer.ids)
        assert answer.finish_reason == "length" or holds(wish, answer.text)
        assert answer.finish_reason == "stop" or "choices" not in wish


@pytest.mark.parametrize("few", [0, 100, 10_000])
@pytest.mark.parametrize("params", SAMPLERS, ids=str)
def test_masks_of_few_and_of_many_choose_alike(llm, params, few, monkeypatch):
    expected = [llm.generate("an", **wish, **params, seed=5, max_tokens=30).ids for wish in WISHES.values()]
    monkeypatch.setattr(mask, "FEW", few)
    assert [llm.generate("an", **wish, **params, seed=5, max_tokens=30).ids for wish in WISHES.values()] == expected


@pytest.mark.parametrize("options", [{}, {"max_num_batched_tokens": 3}, {"speculation": "ngram"}, {"max_num_seqs": 1}])
def test_company_chunks_and_drafts_change_no_answer(llm, path, options):
    asked = [{**wish, **params, "seed": 3, "max_tokens": 40} for wish in WISHES.values() for params in SAMPLERS[:4]]
    alone = [llm.generate("the the", **one).ids for one in asked]
    with halfbyte.load(path, backend="reference", context=256, **options) as other, ThreadPoolExecutor(16) as pool:
        assert [answer.ids for answer in pool.map(lambda one: other.generate("the the", **one), asked)] == alone
        assert other.info()["pages_used"] == 0


def test_tokens_without_a_choice_are_not_computed_one_by_one(llm):
    before = llm.metrics().steps
    answer = llm.generate("the", schema=POINT, max_tokens=60, seed=1)
    steps = llm.metrics().steps - before
    assert len(answer.ids) > 30
    assert steps < len(answer.ids) / 2
    before = llm.metrics().steps
    told = llm.generate("the", schema=POINT, max_tokens=60, seed=1, logprobs=1)
    assert told.ids == answer.ids
    assert llm.metrics().steps - before >= len(told.ids)
    assert len(told.logprobs) == len(told.ids)


def test_an_answer_ends_with_its_grammar_and_not_a_token_later(llm):
    answer = llm.generate("x", regex="abc", max_tokens=3)
    assert (answer.text, answer.finish_reason) == ("abc", "stop")
    assert llm.generate("x", regex="abc", max_tokens=2).finish_reason == "length"
    assert llm.generate("x", regex="a+", max_tokens=50, logit_bias={97: 50.0}).text == "a" * 50


def test_a_fork_goes_on_in_the_grammar_where_it_left(llm):
    for taken in (1, 3, 6):
        with llm.stream("then", schema=POINT, temperature=1.0, seed=2, max_tokens=60) as stream:
            said = "".join(next(stream).text for _ in range(taken))
            forks = [stream.fork(seed=seed) for seed in range(3)]
            texts = [said + fork.collect().text for fork in forks]
        for text in texts:
            assert holds(WISHES["schema"], text)
    with llm.stream("then", regex="[ab]{4}", max_tokens=60) as stream:
        said = next(stream).text
        assert re.fullmatch("[ab]", said)
        assert re.fullmatch("[cd]{4}", stream.fork(regex="[cd]{4}").collect().text)


def test_a_class_gives_an_object(llm):
    turn = llm.generate("then", schema=Turn, temperature=1.0, seed=4, max_tokens=80)
    assert isinstance(turn, Turn)
    assert turn.side in Side
    assert 0 <= turn.degrees <= 360
    assert [type(one) for one in llm.generate(["a", "b"], schema=Turn, max_tokens=80)] == [Turn, Turn]
    message = [{"role": "user", "content": "the"}]
    assert isinstance(llm.chat(message, schema=Turn, max_tokens=80), Turn)

    async def both():
        return await asyncio.gather(
            llm.agenerate("a", schema=Turn, max_tokens=80), llm.achat(message, schema=Turn, max_tokens=80)
        )

    assert [type(one) for one in asyncio.run(both())] == [Turn, Turn]
    assert set(llm.generate("then", schema=list[Side], max_tokens=200, seed=1, temperature=2.0)) <= set(Side)


def test_a_mapping_gives_data_beside_the_text(llm):
    answer = llm.generate("the", schema=POINT, max_tokens=80, seed=1)
    assert answer.parsed == json.loads(answer.text)
    assert llm.generate("the", schema=POINT, max_tokens=5).parsed is None
    assert llm.generate("the", schema=POINT, max_tokens=80, stop="vertical").parsed is None
    assert llm.generate("the", regex="abc").parsed is None


def test_an_object_that_was_cut_is_an_error_that_has_what_there_is(llm):
    with pytest.raises(IncompleteAnswerError, match="max_tokens") as caught:
        llm.generate("the", schema=Turn, max_tokens=3)
    assert caught.value.completion.text == llm.detokenize(caught.value.completion.ids)


def test_checks_of_the_class_that_no_schema_holds_are_an_error(llm):
    class Never(BaseModel):
        side: Side

        @field_validator("side")
        @classmethod
        def refuse(cls, value):
            raise ValueError("not today")

    with pytest.raises(RequestError, match=r"(?s)refuses it.*not today"):
        llm.generate("the", schema=Never, max_tokens=80)
    assert llm.generate("the", regex="abc").text == "abc"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"regex": "(a"}, ConfigError, "regex cannot be understood.*unclosed group"),
        ({"regex": ""}, ConfigError, "regex must be a string that is not empty"),
        ({"regex": "(?=a)b"}, ConfigError, "look-ahead"),
        ({"choices": []}, ConfigError, "choices must be a list of strings"),
        ({"choices": "ab"}, ConfigError, "choices must be a list"),
        ({"choices": ["a", ""]}, ConfigError, "none of them empty"),
        ({"grammar": "root := a"}, ConfigError, "grammar is not GBNF.*line 1"),
        ({"grammar": 'start ::= "a"'}, ConfigError, "grammar"),
        ({"schema": 3}, ConfigError, "schema must be a mapping"),
        ({"schema": {"type": "strin"}}, ConfigError, "strin"),
        ({"schema": {"$ref": "#/nowhere"}}, ConfigError, "nowhere"),
        ({"schema": {1: 2}}, ConfigError, "key 1"),
        ({"schema": {"default": float("nan")}}, ConfigError, "plain JSON"),
        ({"schema": {"properties": {"a": {"minimun": 3}}}}, UnsupportedError, "'minimun' at /properties/a.*'minimum'"),
        ({"schema": object()}, ConfigError, "no JSON schema"),
        ({"regex": "a", "choices": ["a"]}, ConfigError, "regex and choices exclude each other"),
        ({"regex": "a" * (1 << 20) + "b"}, ConfigError, "more than the 1048576"),
        ({"schema": POINT, "regexp": "a"}, ConfigError, "did you mean 'regex'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_at_once(llm, options, error, message):
    with pytest.raises(error, match=message):
        llm.stream("the", **options)
    assert llm.info()["pages_used"] == 0


def test_a_ban_of_all_that_may_follow_is_an_error_of_its_own(llm):
    with pytest.raises(RequestError, match="all tokens are banned"):
        llm.generate("x", regex="a", logit_bias={token: float("-inf") for token in range(256)})


def test_a_grammar_may_name_control_tokens(llm):
    answer = llm.generate("x", grammar=Lark('start: "a" <|im_start|> "b"'), spelled=["<|im_start|>"])
    assert answer.text == "a<|im_start|>b"
    assert llm.tokenize("<|im_start|>", special=True)[0] in answer.ids


def test_free_text_may_come_before_what_is_forced(llm):
    lark = Lark('start: free | free "<call>" /[0-9]{3}/\nfree[lazy]: /[a-z ]{0,20}/')
    texts = {llm.generate("x", grammar=lark, temperature=1.0, seed=seed, max_tokens=60).text for seed in range(8)}
    assert all(re.fullmatch(r"[a-z ]*(<call>[0-9]{3})?", text) for text in texts)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=5))
def test_choices_of_any_text_are_said_as_they_are(llm, texts):
    assert llm.generate("the", choices=texts, temperature=1.0).text in texts
