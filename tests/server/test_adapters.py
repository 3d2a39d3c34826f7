"""Adapters by the field of a request, and as models of their own."""

from __future__ import annotations

import openai
import pytest

import halfbyte
from halfbyte.server.served import Served
from tests.model.adapters import make_adapter
from tests.model.tiny import tiny_model
from tests.server.running import running

SHAPES = {"blk.0.attn_q.weight": (64, 64), "blk.1.ffn_down.weight": (64, 128)}
ASK = {"prompt": [*range(20, 60)], "max_tokens": 8, "temperature": 0}


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    path = tiny_model(folder)
    for seed, name in enumerate(("one", "two")):
        make_adapter(folder / f"{name}.gguf", SHAPES, seed=seed)
    files = {"one": (folder / "one.gguf", 4.0), "two": (folder / "two.gguf", 4.0)}
    with halfbyte.load(path, backend="reference", adapters=files, kv_memory="4MB") as made:
        yield made


@pytest.fixture(scope="module")
def client(llm):
    with (
        running(Served(llm, "tiny")) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made,
    ):
        yield made


def asked(client, model="tiny", **extra):
    return client.completions.create(model=model, **ASK, extra_body=extra).choices[0].text


def test_a_request_has_the_adapters_it_asks_for(client, llm):
    choices = [None, [], "one", ["two"], ["one", "two"], {"one": 0.5, "two": -1}]
    expected = [llm.generate(ASK["prompt"], max_tokens=8, temperature=0, adapters=choice).text for choice in choices]
    assert len(set(expected)) > 3
    assert [asked(client, adapters=choice) for choice in choices] == expected


def test_an_adapter_is_a_model_to_clients_that_know_no_such_field(client):
    models = {model.id: model for model in client.models.list()}
    assert list(models) == ["tiny", "tiny:one", "tiny:two"]
    assert models["tiny:one"].parent == "tiny"
    assert client.models.retrieve("tiny:two").id == "tiny:two"
    assert asked(client, "tiny:one") == asked(client, adapters="one")
    assert client.completions.create(model="tiny:two", **ASK).model == "tiny:two"


@pytest.mark.parametrize(
    ("model", "adapters", "says"),
    [
        ("tiny", "three", "there is no 'three'; there are: one, two"),
        ("tiny", ["one", "tow"], "did you mean 'two'"),
        ("tiny", "/etc/passwd", "there is no '/etc/passwd'"),
        ("tiny", {"one": "much"}, "scale of an adapter must be a finite number"),
        ("tiny", [1], "adapters must be a name"),
        ("tiny:one", "two", "names an adapter already"),
    ],
)
def test_what_is_no_choice(client, model, adapters, says):
    with pytest.raises(openai.BadRequestError, match=says) as caught:
        asked(client, model, adapters=adapters)
    assert caught.value.param == "adapters"


def test_an_unknown_adapter_is_an_unknown_model(client):
    with pytest.raises(openai.NotFoundError, match="did you mean 'tiny:one'"):
        asked(client, "tiny:on")
