"""Completions of texts, asked for with OpenAI's own client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import openai
import pytest

from halfbyte.runtime.sampling.logprobs import TokenLogprobs
from halfbyte.runtime.score import Score
from halfbyte.server.echo import echo_of
from halfbyte.server.one_by_one import OneByOne
from tests.runtime.toy import toy_answer
from tests.runtime.toy_llm import ANSWER, TEXT, ToyTokenizer

ASK = {"model": "toy", "prompt": "BC", "max_tokens": 12, "temperature": 0}


def decoded(ids):
    return ToyTokenizer().decode(ids)


def test_a_continuation_whole_and_streamed(client):
    done = client.completions.create(**ASK)
    assert (done.choices[0].text, done.choices[0].finish_reason, done.usage.total_tokens) == (TEXT, "length", 14)
    chunks = list(client.completions.create(**ASK, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "length"


def test_ids_are_a_prompt_too_and_sixteen_tokens_the_default(client):
    done = client.completions.create(model="toy", prompt=[1, 2], temperature=0)
    assert done.choices[0].text == decoded(toy_answer([1, 2], 16))


def test_answers_stand_in_the_order_of_their_prompts(client, llm):
    done = client.completions.create(**ASK | {"prompt": ["BC", "D", "EFG"], "n": 2, "temperature": 1, "seed": 3})
    expected = [
        one.text
        for prompt in ("BC", "D", "EFG")
        for one in llm.samples(prompt, 2, max_tokens=12, temperature=1.0, seed=3)
    ]
    assert [choice.text for choice in done.choices] == expected
    assert [choice.index for choice in done.choices] == list(range(6))
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (6, 72)


def test_echo_and_stop(client):
    done = client.completions.create(**ASK | {"stop": [TEXT[4:6], "zz"]}, echo=True)
    assert (done.choices[0].text, done.choices[0].finish_reason) == ("BC" + TEXT[:4], "stop")
    chunks = list(client.completions.create(**ASK, echo=True, stream=True, stream_options={"include_usage": True}))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == "BC" + TEXT
    assert chunks[-1].usage.completion_tokens == 12


def test_logprobs_say_where_in_the_text_a_token_stands(client, llm):
    done = client.completions.create(**ASK, logprobs=2).choices[0].logprobs
    expected = llm.generate("BC", max_tokens=12, logprobs=2, temperature=0).logprobs
    assert done.token_logprobs == pytest.approx([one.logprob for one in expected])
    assert done.tokens == [decoded([token]) for token in ANSWER]
    assert done.text_offset == list(range(12))
    assert [len(top) for top in done.top_logprobs] == [2] * 12
    streamed = [
        token
        for chunk in client.completions.create(**ASK, logprobs=0, stream=True)
        for token in chunk.choices[0].logprobs.tokens
    ]
    assert streamed == done.tokens


def test_a_prompt_is_scored_as_evaluations_ask_for_it(client, llm):
    expected = llm.score("BCDE", 2).tokens
    ask = ASK | {"prompt": "BCDE", "echo": True, "logprobs": 2}
    silent = client.completions.create(**ask | {"max_tokens": 0})
    written = client.completions.create(**ask | {"max_tokens": 3})
    assert (silent.choices[0].text, silent.choices[0].finish_reason) == ("BCDE", "length")
    assert (silent.usage.prompt_tokens, silent.usage.completion_tokens) == (4, 0)
    for done in (silent, written):
        found = done.choices[0].logprobs
        assert found.tokens[:4] == ["B", "C", "D", "E"]
        assert found.token_logprobs[:4] == [None, *(pytest.approx(one.logprob) for one in expected)]
        assert found.top_logprobs[0] is None
        assert found.text_offset == list(range(len(found.tokens)))
    assert len(written.choices[0].logprobs.tokens) == 7
    assert written.choices[0].text.startswith("BCDE")
    many = client.completions.create(**ask | {"prompt": [[1, 2], [3]], "max_tokens": 0, "n": 2})
    assert [choice.text for choice in many.choices] == ["BC", "BC", "D", "D"]
    assert many.usage.prompt_tokens == 3
    chunks = list(client.completions.create(**ask | {"max_tokens": 0}, stream=True))
    assert [chunk.choices[0].logprobs.token_logprobs for chunk in chunks] == [silent.choices[0].logprobs.token_logprobs]


def test_a_begin_token_is_no_part_of_a_text():
    tokens = (TokenLogprobs(1, -1.0), TokenLogprobs(2, -2.0))
    score = Score((0, 1, 2), tokens)
    llm = SimpleNamespace(score=lambda *asked: score, tokenizer=SimpleNamespace(bos_id=0), detokenize=lambda ids: "ABC")
    server = SimpleNamespace(scores=OneByOne(1))
    text, ids = (asyncio.run(echo_of(server, llm, prompt, 0, None)) for prompt in ("BC", [0, 1, 2]))
    assert (text.text, text.count, text.tokens) == ("BC", 3, list(tokens))
    assert (ids.text, ids.count, ids.tokens) == ("ABC", 3, [0, *tokens])


def test_halves_of_a_character_begin_where_it_does(client):
    done = client.completions.create(**ASK | {"prompt": [1, 7, 8, 2], "max_tokens": 0}, echo=True, logprobs=0)
    assert done.choices[0].text == "BéC"
    assert done.choices[0].logprobs.text_offset == [0, 1, 1, 2]


def test_sampling_fields_reach_the_engine(client, llm):
    given = {"temperature": 1.3, "seed": 11, "top_p": 0.9, "presence_penalty": 0.5, "frequency_penalty": 0.2}
    extra = {"top_k": 7, "min_p": 0.01, "repeat_penalty": 1.2}
    expected = llm.generate("BC", max_tokens=12, logit_bias={4: 3.0}, **given, **extra).text
    ask = ASK | given | {"logit_bias": {"4": 3}}
    assert client.completions.create(**ask, extra_body=extra).choices[0].text == expected
    assert client.completions.create(**ask | {"logit_bias": {"4": 100}}).choices[0].text == "E" * 12


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [1, "B"]}, "prompt"),
        ({"prompt": [99]}, None),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": 100, "prompt": ["B", "C"]}, "n"),
        ({"logprobs": 21}, "logprobs"),
        ({"stop": ["B", ""]}, "stop"),
        ({"stop": ""}, "stop"),
        ({"best_of": 4}, "best_of"),
        ({"suffix": "B"}, "suffix"),
        ({"top_p": 1.5}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"logit_bias": {"B": 1}}, "logit_bias"),
        ({"logit_bias": {"99": 1}}, None),
        ({"stop": ["B"] * 17}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"tempratur": 1}}, "tempratur"),
        ({"extra_body": {"top_k": "many"}}, "top_k"),
        ({"extra_body": {"adapters": "none-such"}}, "adapters"),
        ({"extra_body": {"adapters": 4}}, "adapters"),
    ],
)
def test_what_cannot_be_done_is_said_by_name(client, given, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(**ASK | given)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_a_prompt_longer_than_the_context_has_openais_code(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(**ASK | {"prompt": [1] * 700})
    assert caught.value.code == "context_length_exceeded"
