"""Limits of size, time and number."""

from __future__ import annotations

import threading
from socket import SO_SNDBUF, SOL_SOCKET

import httpx
import openai
import pytest

from halfbyte.server.address import listen
from halfbyte.server.served import Served
from tests.runtime.toy import Gate, ToyExecutable, wait_until
from tests.runtime.toy_llm import TEXT, toy_llm
from tests.server.raw import Raw, error_of, status_of
from tests.server.running import running

LONG = b'{"model": "toy", "prompt": "BC", "max_tokens": 600, "stream": true, "temperature": 0}'


@pytest.fixture(scope="module")
def strict(llm):
    limits = {"max_body": 1000, "body_timeout": 0.2, "head_timeout": 0.2, "max_connections": 8, "keep_alive": 0.05}
    with running(Served(llm, "toy"), **limits) as server:
        yield server


@pytest.fixture
def held():
    """A server of a model that is held in its first step."""
    gate = Gate()
    executable = ToyExecutable(n_pages=400, before_run=gate)
    with toy_llm(executable, context=700, max_num_seqs=1, max_queued=1) as llm, running(Served(llm, "toy")) as server:
        server.gate, server.llm = gate, llm
        yield server
        executable.before_run = lambda batch: None
        gate.open.release(1000)


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(strict):
    with Raw(strict) as raw:
        raw.post(b"", "/v1/completions", "content-length: 1001")
        answer = raw.until(b"}}")
        assert (status_of(answer), error_of(answer)["code"]) == (413, "body_too_large")


def test_one_that_does_not_say_is_refused_while_it_comes(strict):
    with Raw(strict) as raw:
        raw.post(b"3e9\r\n" + b" " * 1001, "/v1/completions", "transfer-encoding: chunked")
        answer = raw.until(b"}}")
        assert (status_of(answer), error_of(answer)["code"]) == (413, "body_too_large")
        assert b"connection: close" in answer.lower()


def test_a_client_that_sends_all_before_it_reads_still_gets_the_answer(strict):
    answer = httpx.post(f"{strict.url}/v1/completions", content=b" " * 5_000_000)
    assert answer.status_code == 413


def test_a_body_at_the_limit_is_fine(strict):
    body = b'{"prompt": "B", "max_tokens": 1}'
    assert httpx.post(f"{strict.url}/v1/completions", content=body.ljust(1000)).status_code == 200


def test_a_slow_body_is_given_up(strict):
    with Raw(strict) as raw:
        raw.post(b"{", "/v1/completions", "content-length: 50")
        answer = raw.rest()
        assert (status_of(answer), error_of(answer)["code"]) == (408, "body_timeout")


@pytest.mark.parametrize("start", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nhost: local"])
def test_a_slow_head_is_cut_off(strict, start):
    with Raw(strict) as raw:
        raw.send(start)
        assert raw.rest() == b""
    assert httpx.get(f"{strict.url}/health").status_code == 200


def test_a_connection_may_be_used_again_after_a_pause(strict):
    with Raw(strict) as raw:
        for _ in range(2):
            raw.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert status_of(raw.until(b"}")) == 200
            threading.Event().wait(0.3)


def test_what_is_no_http_is_told_so(strict):
    for data in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"A" * 100_000):
        with Raw(strict) as raw:
            raw.send(data)
            answer = raw.rest()
            assert (status_of(answer), error_of(answer)["code"]) == (400, "invalid_http")


def test_connections_have_a_limit_and_those_that_are_there_go_on(strict):
    opened = [Raw(strict) for _ in range(8)]
    try:
        opened[0].send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert status_of(opened[0].until(b"}")) == 200
        with Raw(strict) as one_more:
            assert one_more.rest() == b""
    finally:
        for raw in opened:
            raw.socket.close()
    wait_until(lambda: _answers(strict))


def _answers(server) -> bool:
    try:
        return httpx.get(f"{server.url}/health").status_code == 200
    except httpx.HTTPError:
        return False


def test_a_full_queue_is_429_with_a_time_to_come_back(held):
    with Raw(held) as first, Raw(held) as second:
        first.post(LONG)
        first.until(b"\r\n\r\n")
        held.gate.entered.acquire(timeout=10)
        second.post(LONG)
        second.until(b"\r\n\r\n")
        with (
            openai.OpenAI(base_url=f"{held.url}/v1", api_key="none", max_retries=0) as client,
            pytest.raises(openai.RateLimitError) as caught,
        ):
            client.completions.create(model="toy", prompt="B")
        assert caught.value.code == "queue_full"
        assert int(caught.value.response.headers["retry-after"]) >= 1


def test_time_runs_out_before_the_stream_or_within(held):
    ask = {"model": "toy", "prompt": "B"}
    with openai.OpenAI(base_url=f"{held.url}/v1", api_key="none", max_retries=2) as client:
        releaser = threading.Timer(0.2, held.gate.open.release, (1000,))
        releaser.start()
        with pytest.raises(openai.InternalServerError) as caught:
            client.completions.create(**ask, extra_body={"timeout": 0.05})
        assert (caught.value.status_code, caught.value.code) == (504, "deadline_exceeded")
        assert caught.value.response.request.headers["x-stainless-retry-count"] == "0"
        with pytest.raises(openai.APIError, match="timeout"):
            list(client.completions.create(**ask | {"max_tokens": 600}, stream=True, extra_body={"timeout": 0.001}))
        releaser.join()


@pytest.mark.parametrize("stream", [b"true", b"false"])
def test_a_client_that_goes_away_cancels(held, stream):
    with Raw(held) as raw:
        raw.post(LONG.replace(b"true", stream))
        held.gate.entered.acquire(timeout=10)
        assert held.app.state.server.drain.running == 1
    wait_until(lambda: held.app.state.server.drain.running == 0)
    held.gate.open.release(1000)
    wait_until(lambda: held.llm.metrics().ended["cancelled"] == 1)
    assert held.llm.metrics().pages_used == 0


def test_a_client_that_takes_nothing_is_given_up():
    socket = listen()
    socket.setsockopt(SOL_SOCKET, SO_SNDBUF, 4096)  # as if megabytes of buffers were full already
    with (
        toy_llm(ToyExecutable(n_pages=400), context=700) as llm,
        running(Served(llm, "toy"), at=socket, stall_timeout=0.1) as server,
        Raw(server, receive_buffer=4096) as raw,
    ):
        raw.post(LONG.replace(b'"stream"', b'"logprobs": 20, "stream"'))
        wait_until(lambda: llm.metrics().ended["cancelled"] == 1)
        wait_until(lambda: server.app.state.server.drain.running == 0)
        assert llm.metrics().pages_used == 0
        assert b'status="499"' in httpx.get(f"{server.url}/metrics").content


def test_a_silent_stream_shows_that_it_lives(llm):
    gate = Gate()
    executable = ToyExecutable(before_run=gate)
    with toy_llm(executable) as slow, running(Served(slow, "toy"), keep_alive=0.02) as server, Raw(server) as raw:
        raw.post(LONG.replace(b"600", b"12"))
        got = raw.until(b": still here\n\n")
        gate.open.release(1000)
        got += raw.until(b"[DONE]")
        assert got.count(b": still here") >= 1
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            ask = {"model": "toy", "prompt": "BC", "max_tokens": 12, "temperature": 0}
            assert "".join(one.choices[0].text for one in client.completions.create(**ask, stream=True)) == TEXT
