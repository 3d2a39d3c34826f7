"""`halfbyte serve`: a process that serves until it is told to stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import openai
import pytest

from halfbyte.cli.server_settings import server_setting, setting_rows
from halfbyte.errors import ConfigError
from halfbyte.server.config import ServerConfig
from tests.model.tiny import tiny_model

CODE = (
    "import sys\n"
    "from halfbyte.runtime.backends import BACKENDS, build_reference\n"
    "BACKENDS._resolved['cpu'] = build_reference\n"
    "from halfbyte.cli.main import main\n"
    "sys.exit(main())\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tiny_model(folder)
    tiny_model(folder, "bert")
    return folder


class Process:
    """A running command; `said` is what it wrote to stderr so far."""

    def __init__(self, words, **environment) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", CODE, "serve", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self.said: list[str] = []
        self.serving = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.popen.stderr:
            self.said.append(line)
            if line.startswith("serving "):
                self.serving.set()
        self.serving.set()

    @property
    def url(self) -> str:
        assert self.serving.wait(60)
        found = re.search(r"API at (\S+/v1)", "".join(self.said))
        assert found, self.said
        return found[1]

    def stop(self, number=signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(20)

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait(20)
        self._reader.join(20)
        self.popen.stdout.close()
        self.popen.stderr.close()


@contextmanager
def serving(*words, **environment):
    process = Process(words, **environment)
    try:
        yield process
    finally:
        process.close()


def test_it_serves_both_kinds_and_lets_an_answer_end_before_it_stops(folder):
    words = [str(folder / "tiny-llama.gguf"), "--name", "little", "--embeddings", str(folder / "tiny-bert.gguf")]
    with (
        serving(*words, "-c", "250", HALFBYTE_API_KEY="secret") as process,
        openai.OpenAI(base_url=process.url, api_key="secret", max_retries=0) as client,
    ):
        assert [model.id for model in client.models.list()] == ["little", "tiny-bert"]
        assert len(client.embeddings.create(model="tiny-bert", input="the cat").data[0].embedding) == 64
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
        ask = {"model": "little", "prompt": "the", "max_tokens": 200, "temperature": 0, "logit_bias": {"2": -100}}
        stream = client.completions.create(**ask, stream=True)
        pieces = [next(stream)]
        process.popen.send_signal(signal.SIGTERM)
        pieces += list(stream)
        assert pieces[-1].choices[0].finish_reason == "length"
        assert process.popen.wait(20) == 0
        assert process.popen.stdout.read() == ""
        said = "".join(process.said)
        assert said.endswith("stopped\n")
        assert re.search(r"\d\d:\d\d:\d\d GET /v1/models 401 [\d.]+ s: the API key is wrong", said)
        assert "secret" not in said


def test_an_encoder_is_served_alone_and_ctrl_c_ends_it(folder):
    with (
        serving(str(folder / "tiny-bert.gguf"), "--host", "0.0.0.0") as process,
        openai.OpenAI(base_url=process.url, api_key="none", max_retries=0) as client,
    ):
        assert [model.id for model in client.models.list()] == ["tiny-bert"]
        with pytest.raises(openai.BadRequestError, match="no model that writes"):
            client.completions.create(model="tiny-bert", prompt="a")
        assert process.stop(signal.SIGINT) == 0
        assert "warning: whoever reaches 0.0.0.0 may use this model" in "".join(process.said)


def test_a_port_that_is_taken_is_told_before_the_model_is_loaded(run, loaded, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("serve", str(folder / "tiny-llama.gguf"), "--port", str(port))
    assert (done.code, done.out) == (1, "")
    assert f"cannot listen at 127.0.0.1 port {port}" in done.err
    assert loaded == []


def test_mistakes_are_one_line(run, loaded, folder, tmp_path):
    model = str(folder / "tiny-llama.gguf")
    (tmp_path / "keys").write_text("# none\n\n")
    for words, says in (
        (["--set", "timeot=5"], "did you mean 'timeout'?"),
        (["--set", "timeout=soon"], "'soon' is not a number"),
        (["--set", "timeout=-1"], "timeout must be a number of seconds above 0"),
        (["--set", "max_body=lots"], "'lots' is no size"),
        (["--set", "page=maybe"], "page must be on or off"),
        (["--cors", "example.org"], "an origin is written as in https://example.org"),
        (["--api-keys", str(tmp_path / "keys")], "there is no key in it"),
        (["--api-keys", str(tmp_path / "nowhere")], "nowhere"),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
        ([], "nothing.gguf"),
    ):
        done = run("serve", "--port", "0", model if words else str(tmp_path / "nothing.gguf"), *words)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1), done.err
        assert says in done.err
    assert loaded == []


def test_every_limit_is_a_setting():
    names = {name for name, _ in setting_rows()}
    assert names == ServerConfig.__dataclass_fields__.keys() - {"keys", "origins"}
    given = ["max-body=1MB", "timeout=1.5", "max_choices=3", "hosts=a.example, B.example", "page=off"]
    config = ServerConfig(**dict(map(server_setting, given)))
    assert (config.max_body, config.timeout, config.max_choices, config.page) == (10**6, 1.5, 3, False)
    assert config.hosts == ("a.example", "b.example")
    with pytest.raises(ConfigError, match="write NAME=VALUE"):
        server_setting("timeout")
