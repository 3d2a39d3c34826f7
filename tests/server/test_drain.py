"""The end of a server: nothing new, what is under way goes on, and what does not end is broken off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading

import httpx
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.server import RunningServer, Served, ServerConfig, listen
from halfbyte.server.address import is_local
from halfbyte.server.app import GETS, POSTS
from halfbyte.server.errors import KINDS
from tests.model.tiny import tiny_model
from tests.runtime.toy import Gate, ToyExecutable
from tests.runtime.toy_llm import TEXT, toy_llm
from tests.server.raw import Raw, error_of, status_of
from tests.source_tree import ROOT, python_files

ASK = {"prompt": "BC", "max_tokens": 12, "temperature": 0}


class Draining:
    """A server that is told to end while its model is held in a step."""

    def __init__(self, **config) -> None:
        self.gate = Gate()
        self.executable = ToyExecutable(before_run=self.gate)
        self.llm = toy_llm(self.executable)
        self.server = RunningServer(Served(self.llm, "toy"), ServerConfig(**config))
        self.started = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(self.started.set)))

    def __enter__(self):
        self.thread.start()
        assert self.started.wait(10)
        return self

    @contextlib.contextmanager
    def asked(self, *, stream: bool):
        """The connection of a request that is being computed when the end begins."""
        with Raw(self.server) as raw:
            raw.post(json.dumps(ASK | {"stream": stream}).encode())
            self.gate.entered.acquire(timeout=10)
            self.server.drain()
            yield raw

    def go_on(self) -> None:
        self.executable.before_run = lambda batch: None
        self.gate.open.release(1000)

    def __exit__(self, *error) -> None:
        self.go_on()
        self.server.drain()
        self.thread.join(20)
        self.llm.close()
        assert not self.thread.is_alive()


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_under_way_ends_and_no_new_one_begins(stream):
    with Draining() as test:
        with Raw(test.server) as other:
            other.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b"ready" in other.until(b"}")
            with test.asked(stream=stream) as raw:
                while True:
                    other.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    answer = other.until(b"}")
                    if b"draining" in answer:
                        break
                assert status_of(answer) == 503
                other.post(json.dumps(ASK).encode())
                refused = other.until(b"}}")
                assert (status_of(refused), error_of(refused)["code"]) == (503, "shutting_down")
                assert b"retry-after: 5" in refused
                test.go_on()
                rest = raw.rest()
        text = rest.decode()
        if stream:
            pieces = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
            assert "".join(choice["text"] for piece in pieces for choice in piece["choices"]) == TEXT
            assert "data: [DONE]" in text
        else:
            assert json.loads(text.partition("\r\n\r\n")[2])["choices"][0]["text"] == TEXT
        test.thread.join(10)
        assert not test.thread.is_alive()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{test.server.url}/health")


@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_end_in_time_is_broken_off_and_told_so(stream):
    with Draining(drain_timeout=0.05) as test, test.asked(stream=stream) as raw:
        threading.Timer(0.2, test.go_on).start()
        rest = raw.rest()
        test.thread.join(10)
        assert not test.thread.is_alive()
        body = rest if stream else rest.partition(b"\r\n\r\n")[2]
        assert b'"code":"shutting_down"' in body
        assert stream or status_of(rest) == 503
        assert b"[DONE]" not in rest


def test_an_idle_server_ends_at_once_whenever_it_is_told():
    with toy_llm() as llm:
        server = RunningServer(Served(llm))
        server.drain()
        asyncio.run(asyncio.wait_for(server.serve(), 10))
        server.drain()


def test_an_address_that_cannot_be_had_is_an_error():
    with listen() as taken:
        taken.listen()
        with pytest.raises(ResourceError, match=r"cannot listen at .* port"):
            listen(port=taken.getsockname()[1])
    with pytest.raises(ResourceError, match="cannot listen at 203"):
        listen("203.0.113.7")
    with listen("localhost") as both:
        assert both.family == socket.AF_INET
    assert [is_local(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "192.168.0.1")] == [True] * 3 + [
        False
    ] * 2


def test_a_server_needs_a_model_and_two_need_two_names():
    with pytest.raises(ConfigError, match="needs a model"):
        Served()
    with toy_llm() as llm, pytest.raises(ConfigError, match="another name"):
        Served(llm, "same", llm, "same")


def test_the_example_of_the_page_runs(tmp_path, capsys):
    page = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example.count('"smollm2-135m"') == 1
    exec(example.replace('"smollm2-135m"', repr(str(tiny_model(tmp_path)))), {})
    assert re.fullmatch(r"listening at http://127\.0\.0\.1:\d+\n", capsys.readouterr().out)


def test_the_page_names_every_path_and_every_code():
    page = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    assert [path for path in [*POSTS, *GETS] if path.partition("/{")[0] not in page] == []
    sources = [path.read_text(encoding="utf-8") for path in python_files("halfbyte/server")]
    codes = {code for source in sources for code in re.findall(r'code="(\w+)"', source)}
    codes |= {code for *_, code in KINDS if code}
    inner = {"internal_error", "invalid_http", "adapter_not_found", "unsupported_model"}
    assert sorted(code for code in codes - inner if f"`{code}`" not in page) == []
