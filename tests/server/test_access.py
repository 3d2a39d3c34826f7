"""Who may use a server: keys, names, and pages of others."""

from __future__ import annotations

import httpx
import openai
import pytest

from halfbyte.errors import ConfigError
from halfbyte.server.address import listen
from halfbyte.server.config import ServerConfig
from halfbyte.server.served import Served
from tests.runtime.toy import wait_until
from tests.server.running import running

ASK = {"prompt": "B", "max_tokens": 1}
KEYS = ("first-key", "second")


@pytest.fixture(scope="module")
def locked(llm):
    with running(Served(llm, "toy"), keys=KEYS, origins=("https://friend.example",)) as server:
        yield server


def test_any_of_the_keys_opens(locked):
    for key in KEYS:
        with openai.OpenAI(base_url=f"{locked.url}/v1", api_key=key) as client:
            assert client.completions.create(model="toy", **ASK).usage.completion_tokens == 1


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Bearer first-ke", "Basic first-key", "Bearer é"])
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/completions"), ("GET", "/v1/models"), ("GET", "/metrics")])
def test_nothing_else_does(locked, header, method, path):
    headers = {"authorization": header.encode()} if header else {}
    answer = httpx.request(method, locked.url + path, headers=headers, json=ASK if method == "POST" else None)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert not any(key in answer.text for key in KEYS)


def test_health_and_the_page_need_none(locked):
    assert httpx.get(f"{locked.url}/health").status_code == 200
    assert httpx.get(f"{locked.url}/").status_code in (200, 404)


def test_a_key_is_refused_before_its_body_is_read(locked):
    sent = []

    def body():
        for _ in range(3):
            sent.append(1)
            yield b"x" * 1000

    answer = httpx.post(f"{locked.url}/v1/completions", content=body())
    assert (answer.status_code, answer.headers["connection"]) == (401, "close")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]:80", "LOCALHOST:1"])
def test_a_server_without_keys_answers_to_this_computers_names(server, host):
    assert httpx.get(f"{server.url}/v1/models", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", "localhost.evil", "@localhost@x"])
def test_and_to_no_other(server, host):
    answer = httpx.get(f"{server.url}/v1/models", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "unknown_host")


def test_a_server_that_others_reach_answers_to_the_names_they_use(llm):
    with running(Served(llm, "toy"), at=listen("0.0.0.0")) as open_to_all:
        address = f"http://127.0.0.1:{open_to_all.port}/v1/models"
        assert httpx.get(address, headers={"host": "model.lan:80"}).status_code == 200
    with running(Served(llm, "toy"), at=listen("0.0.0.0"), hosts=("model.lan",)) as named:
        address = f"http://127.0.0.1:{named.port}/v1/models"
        assert httpx.get(address, headers={"host": "Model.lan:80"}).status_code == 200
        assert httpx.get(address, headers={"host": "other.lan"}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://friend.example.evil"]
)
def test_pages_of_others_are_refused(server, locked, origin):
    for one in (server, locked):
        headers = {"origin": origin, "authorization": f"Bearer {KEYS[0]}"}
        answer = httpx.post(f"{one.url}/v1/completions", headers=headers, json=ASK)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


def test_the_servers_own_page_is_not(server):
    answer = httpx.post(f"{server.url}/v1/completions", headers={"origin": server.url}, json=ASK)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_pages_that_are_allowed_may_ask_and_read_errors_too(locked):
    origin = "https://friend.example"
    asked = {"origin": origin, "access-control-request-method": "POST"}
    preflight = httpx.options(
        f"{locked.url}/v1/completions", headers=asked | {"access-control-request-headers": "authorization,content-type"}
    )
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, origin)
    for key, status in (("wrong", 401), (KEYS[0], 200)):
        headers = {"origin": origin, "authorization": f"Bearer {key}"}
        answer = httpx.post(f"{locked.url}/v1/completions", headers=headers, json=ASK)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, origin)


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": ("",)},
        {"keys": ("two words",)},
        {"keys": ("schlüssel",)},
        {"origins": ("example.org",)},
        {"origins": ("https://example.org/",)},
        {"max_body": 0},
        {"timeout": float("nan")},
        {"drain_timeout": -1},
    ],
)
def test_a_wrong_configuration_is_named(wrong):
    with pytest.raises(ConfigError) as caught:
        ServerConfig(**wrong)
    assert caught.value.key == next(iter(wrong))


def test_a_log_line_is_one_line_whatever_was_sent(server, caplog):
    with caplog.at_level("INFO", "halfbyte.server"):
        httpx.get(f"{server.url}/v1/models/x%1b[2J")
        httpx.post(f"{server.url}/v1/completions", json={"model": "a\nforged\x1b", "prompt": "B"})
        wait_until(lambda: len(caplog.records) == 2)
    lines = [record.getMessage() for record in caplog.records]
    assert all(line.isprintable() and " 404 " in line for line in lines)
