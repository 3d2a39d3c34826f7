"""Models, tokens, health and metrics."""

from __future__ import annotations

import re

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.toy import wait_until
from tests.source_tree import ROOT


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.url) as made:
        yield made


def test_models(client, llm):
    (model,) = client.models.list()
    assert (model.id, model.object, model.max_model_len) == ("toy", "model", llm.context)
    assert client.models.retrieve("toy").id == "toy"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("some/other")
    assert caught.value.code == "model_not_found"


def test_texts_and_conversations_become_tokens_and_back(http):
    given = http.post("/tokenize", json={"prompt": "BC", "return_token_strs": True}).json()
    assert given == {"tokens": [1, 2], "count": 2, "max_model_len": 700, "token_strs": ["B", "C"]}
    chat = {"messages": [{"role": "user", "content": "bc"}], "chat_template_kwargs": {"shout": True}}
    assert http.post("/tokenize", json=chat).json()["tokens"] == [1, 2]
    assert http.post("/detokenize", json={"tokens": [1, 2, 7, 8]}).json() == {"prompt": "BCé"}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "B", "messages": []}, "prompt"),
        ("/tokenize", {"prompt": 4}, "prompt"),
        ("/tokenize", {"messages": 4}, "messages"),
        ("/tokenize", {"messages": [{"role": "user", "content": "B"}], "chat_template_kwargs": {"messages": 1}},
         "chat_template_kwargs"),
        ("/detokenize", {"tokens": "B"}, "tokens"),
        ("/detokenize", {"tokens": [True]}, "tokens"),
        ("/detokenize", {"tokens": [10**30]}, None),
        ("/detokenize", {}, "tokens"),
    ],
)  # fmt: skip
def test_what_is_no_text_or_token(http, path, body, param):
    answer = http.post(path, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_health(http):
    answer = http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "requests": 0})


def samples(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_are_prometheus_and_count_what_happened(http, client):
    client.completions.create(model="toy", prompt="BC", max_tokens=12, temperature=0)
    http.get("/no/such/path")
    http.post("/v1/completions", json={"prompt": 4})
    # A request is counted when it has ended, just after its client has the answer.
    refused = "halfbyte_http_requests_total", "/v1/completions", "400"
    wait_until(lambda: refused in samples(http.get("/metrics").text))
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = samples(answer.text)
    assert found["halfbyte_http_requests_total", "/v1/completions", "200"] >= 1
    assert found["halfbyte_http_requests_total", "other", "404"] >= 1
    assert found["halfbyte_generated_tokens_total",] >= 12
    assert found["halfbyte_first_token_seconds_count",] >= 1
    assert found["halfbyte_pages_used",] == 0
    assert found["halfbyte_ended_total", "length"] >= 1
    assert found["halfbyte_draining",] == 0
    types = re.findall("^# TYPE.*", answer.text, re.M)
    assert len(types) == len(set(types)) > 25


def test_the_page_names_its_metrics_as_they_are(http):
    page = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    section = page.partition("## Metrics")[2].partition("## ")[0]
    names = {f"halfbyte_{name}" for name in re.findall(r"`([a-z0-9_]+)`", section)} - {"halfbyte_halfbyte_"}
    families = {family.name for family in text_string_to_metric_families(http.get("/metrics").text)}
    assert len(names) > 20
    assert {name.removesuffix("_total") for name in names} <= families


def test_paths_and_methods_that_are_not_there(http):
    unknown, wrong = http.get("/v1/chat"), http.get("/v1/completions")
    assert (unknown.status_code, wrong.status_code, wrong.headers["allow"]) == (404, 405, "POST")
    assert {answer.json()["error"]["type"] for answer in (unknown, wrong)} == {"invalid_request_error"}
