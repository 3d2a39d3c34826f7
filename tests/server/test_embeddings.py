"""Vectors of texts, of an encoder beside a model that writes and alone."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import openai
import pytest

import halfbyte
from halfbyte.errors import QueueFullError
from halfbyte.server.one_by_one import OneByOne
from halfbyte.server.served import Served
from tests.model.tiny import tiny_model
from tests.model.tiny_traits import ENCODERS
from tests.server.running import running

TEXTS = ["the cat", "another text", "the cat"]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    path = tiny_model(tmp_path_factory.mktemp("encoder"), ENCODERS[0])
    with halfbyte.load_embedder(path, backend="reference") as made:
        yield made


@pytest.fixture(scope="module")
def client(embedder):
    with (
        running(Served(embedder=embedder, embedder_name="vectors")) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made,
    ):
        yield made


def test_vectors_are_the_embedders(client, embedder):
    done = client.embeddings.create(model="vectors", input=TEXTS)
    np.testing.assert_allclose([one.embedding for one in done.data], embedder.embed(TEXTS), atol=1e-6)
    assert [one.index for one in done.data] == [0, 1, 2]
    assert done.usage.prompt_tokens == sum(len(embedder.tokenizer.encode(text)) for text in TEXTS)
    plain = client.embeddings.create(model="vectors", input="the cat", encoding_format="float")
    np.testing.assert_allclose(plain.data[0].embedding, done.data[0].embedding, atol=1e-6)


def test_ids_are_taken_as_they_are(client, embedder):
    ids = embedder.tokenizer.encode("the cat")
    one, many = (client.embeddings.create(model="vectors", input=given) for given in (ids, [ids, ids]))
    expected = embedder.embed(["the cat"])[0]
    np.testing.assert_allclose([each.embedding for each in [*one.data, *many.data]], [expected] * 3, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [1.5]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": [10**9]}, None),
        ({"dimensions": 7}, "dimensions"),
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"input": "the " * 400}, None),
    ],
)
def test_what_cannot_be_done(client, given, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(**{"model": "vectors", "input": "a"} | given)
    assert caught.value.param == param


def test_each_model_does_what_it_is_for(client, server):
    with pytest.raises(openai.BadRequestError, match="has no model that writes"):
        client.completions.create(model="vectors", prompt="a")
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as writer,
        pytest.raises(openai.BadRequestError, match="no model that makes vectors") as caught,
    ):
        writer.embeddings.create(model="toy", input="a")
    assert caught.value.code == "unsupported_model"


def test_both_are_listed(llm, embedder):
    served = Served(llm, "toy", embedder, "vectors")
    with running(served) as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        assert [model.id for model in client.models.list()] == ["toy", "vectors"]
        assert len(client.embeddings.create(model="vectors", input="a").data[0].embedding) == 64


def test_a_queue_of_vectors_has_an_end_and_who_leaves_it_makes_room():
    gate = threading.Event()

    async def main():
        line = OneByOne(1)
        first, second = (asyncio.ensure_future(line.run(gate.wait)) for _ in range(2))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await line.run(gate.wait)
        second.cancel()
        await asyncio.wait({second})
        third = asyncio.ensure_future(line.run(lambda: 3))
        await asyncio.sleep(0)
        gate.set()
        return await first, await third

    assert asyncio.run(main()) == (True, 3)
