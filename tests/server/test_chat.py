"""Chat completions, asked for with OpenAI's own client."""

from __future__ import annotations

import asyncio

import openai
import pytest

from tests.runtime.toy_llm import TEXT

QUESTION = [{"role": "user", "content": "BC"}]
ASK = {"model": "toy", "messages": QUESTION, "max_tokens": 12, "temperature": 0}


def test_an_answer(client):
    done = client.chat.completions.create(**ASK)
    choice = done.choices[0]
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (TEXT, "assistant", "length")
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (2, 12, 14)
    assert done.usage.completion_tokens_details.reasoning_tokens == 0
    assert done.model == "toy"


def test_a_stream_adds_up_to_the_answer(client):
    chunks = list(client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True}))
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1] if chunk.choices[0].finish_reason] == ["length"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 14
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_the_async_client(server):
    async def main():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            done, stream = await asyncio.gather(
                client.chat.completions.create(**ASK), client.chat.completions.create(**ASK, stream=True)
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            return done.choices[0].message.content, text

    assert asyncio.run(main()) == (TEXT, TEXT)


def test_several_answers(client, llm):
    ask = ASK | {"n": 3, "temperature": 1.0, "seed": 5}
    expected = [one.text for one in llm.samples("BC", 3, max_tokens=12, temperature=1.0, seed=5)]
    done = client.chat.completions.create(**ask)
    assert [choice.message.content for choice in done.choices] == expected
    texts = ["", "", ""]
    for chunk in client.chat.completions.create(**ask, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == expected


def test_logprobs(client):
    done = client.chat.completions.create(**ASK, logprobs=True, top_logprobs=3)
    content = done.choices[0].logprobs.content
    assert len(content) == 12
    assert b"".join(bytes(one.bytes) for one in content).decode(errors="replace") == TEXT
    assert all(one.top_logprobs[0].logprob == one.logprob and len(one.top_logprobs) == 3 for one in content)


def test_a_mistake_names_its_field(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**ASK | {"temperature": "hot"})
    assert caught.value.param == "temperature"
    assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError, match="did you mean 'toy'"):
        client.chat.completions.create(**ASK | {"model": "toi"})
