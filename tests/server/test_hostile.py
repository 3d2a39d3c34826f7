"""Bodies that no client of good will sends: each is a 400, and the server goes on."""

from __future__ import annotations

import itertools
import time

import httpx
import pytest

import halfbyte
from halfbyte.server.served import Served
from tests.model.tiny import tiny_model
from tests.server.running import running

BODIES = {
    "nothing": b"",
    "no JSON": b"prompt=B",
    "half": b'{"prompt": "B"',
    "two": b'{"prompt": "B"} {}',
    "comma": b'{"prompt": "B",}',
    "single quotes": b"{'prompt': 'B'}",
    "a list": b'["prompt"]',
    "a text": b'"prompt"',
    "null": b"null",
    "NaN": b'{"prompt": "B", "temperature": NaN}',
    "infinity": b'{"prompt": "B", "temperature": -Infinity}',
    "overflow": b'{"prompt": "B", "temperature": 1e999}',
    "a long fraction": b'{"prompt": "B", "temperature": 1.' + b"0" * 10_000 + b"}",
    "a long number": b'{"prompt": "B", "max_tokens": ' + b"9" * 10_000 + b"}",
    "a large number": b'{"prompt": "B", "max_tokens": ' + b"9" * 300 + b"}",
    "twins": b'{"prompt": "B", "prompt": "C"}',
    "inner twins": b'{"prompt": "B", "logit_bias": {"1": 1, "1": 2}}',
    "wrong UTF-8": b'{"prompt": "\xff"}',
    "UTF-16": '{"prompt": "B"}'.encode("utf-16"),
    "a mark at the start": b'\xef\xbb\xbf{"prompt": "B"}',
    "encoded surrogates": b'{"prompt": "\xed\xa0\x80"}',
    "half a pair": b'{"prompt": "\\ud800"}',
    "half a pair in a name": b'{"prompt": "B", "\\udfff": 1}',
    "half a pair inside": b'{"prompt": "B", "logit_bias": {"\\ud800": 1}}',
    "a control character": b'{"prompt": "\x01"}',
    "65 deep": b'{"prompt": ' + b"[" * 65 + b"]" * 65 + b"}",
    "100,000 deep": b'{"prompt": ' + b"[" * 100_000,
    "100,000 deep and closed": b'{"prompt": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "a hostile name": b'{"prompt": "B", "__class__": {}}',
    "a name of 10,000": b'{"prompt": "B", "' + b"x" * 10_000 + b'": 1}',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tiny_model(tmp_path_factory.mktemp("tiny"))
    with halfbyte.load(path, backend="reference", context=64) as llm, running(Served(llm, "tiny")) as made:
        yield made


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, headers={"content-type": "application/json"}) as made:
        yield made


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings", "/tokenize"])
def test_no_json_as_it_should_be(http, name, path):
    answer = http.post(path, content=BODIES[name])
    assert answer.status_code == 400, answer.text
    assert len(answer.json()["error"]["message"]) < 1500


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x"]
)
def test_what_says_it_is_something_else_is_415(http, kind):
    answer = http.post("/v1/completions", content=b'{"prompt": "B"}', headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "not_json")


VALUES = [
    None,
    True,
    False,
    -1,
    2**70,
    -0.5,
    1e300,
    "",
    "B",
    "\u0000",
    [],
    [[]],
    [None],
    {},
    {"a": None},
    ["B"] * 3,
    {"type": []},
]
FIELDS = [
    *("model", "prompt", "messages", "n", "max_tokens", "max_completion_tokens", "stream", "stream_options", "stop"),
    *("seed", "temperature", "top_p", "top_k", "logit_bias", "logprobs", "top_logprobs", "response_format", "adapters"),
    *("timeout", "priority", "samplers", "dry_sequence_breakers", "mirostat", "user", "chat_template_kwargs", "store"),
    *("echo", "suffix", "regex", "choices", "grammar"),
]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_any_value_in_any_field_is_served_or_refused(http, path):
    start = {"messages": [{"role": "user", "content": "BC"}]} if "chat" in path else {"prompt": "BC"}
    statuses = set()
    for field, value in itertools.product(FIELDS, VALUES):
        answer = http.post(path, json={**start, "max_tokens": 2, field: value})
        statuses.add(answer.status_code)
        assert answer.status_code in (200, 400, 404, 504), (field, value, answer.text)
    assert statuses >= {200, 400, 404}
    # A client has its answer a moment before the server has put the request away.
    end = time.monotonic() + 5
    while http.get("/health").json() != {"status": "ready", "requests": 0}:
        assert time.monotonic() < end, "a request is left"
