"""Many clients at once, some of them rude: no answer is lost or mixed up, and nothing is left behind."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import halfbyte
from halfbyte.runtime.constraint.keywords import REFUSED
from halfbyte.server import Served
from tests.model.tiny import tiny_model
from tests.runtime.toy import ToyExecutable, wait_until
from tests.runtime.toy_llm import toy_llm
from tests.server.raw import Raw
from tests.server.running import running

REQUESTS, CLIENTS, MALFORMED = 200, 16, 1000
PROMPTS = [letter + other for letter in "ABCDEFGJ" for other in "KLMNO"]
TOKENS = 24


def body(prompt, **more):
    content = {"messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS, "temperature": 0}
    return json.dumps(content | more).encode()


class Client:
    """Sends one request of a kind that its number decides; `wrong` collects what was not as it should be."""

    def __init__(self, server, expected) -> None:
        self.server, self.expected, self.wrong = server, expected, []
        self.http = httpx.Client(base_url=server.url, timeout=60, headers={"content-type": "application/json"})
        self.answered = 0

    def __call__(self, number: int) -> None:
        dice, prompt = random.Random(number), PROMPTS[number % len(PROMPTS)]
        if number % 10 == 0:
            answer = self.http.post("/v1/chat/completions", content=body(prompt)[: dice.randrange(60)])
            self.note(number, answer.status_code, 400)
        elif number % 4 == 1:
            self.leave(prompt, dice)
        else:
            self.note(number, self.ask(prompt, stream=dice.random() < 0.5), self.expected[prompt])
            self.answered += 1

    def note(self, number: int, found: object, wanted: object) -> None:
        if found != wanted:
            self.wrong.append((number, found))

    def ask(self, prompt: str, *, stream: bool) -> str:
        answer = self.http.post("/v1/chat/completions", content=body(prompt, stream=stream))
        if not stream:
            return answer.json()["choices"][0]["message"]["content"]
        events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        choices = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
        return "".join(choice["delta"].get("content", "") for choice in choices)

    def leave(self, prompt: str, dice: random.Random) -> None:
        with Raw(self.server) as raw:
            raw.post(body(prompt, stream=dice.random() < 0.5), "/v1/chat/completions")
            if dice.random() < 0.5:
                raw.socket.recv(dice.randrange(1, 4096))


def test_two_hundred_requests_of_sixteen_clients():
    executable = ToyExecutable(n_pages=60)  # fewer than all need: some make room for others
    with toy_llm(executable, context=64, max_num_seqs=8) as llm:
        expected = {prompt: llm.generate(prompt, max_tokens=TOKENS, temperature=0).text for prompt in PROMPTS}
        with running(Served(llm, "toy")) as server:
            client = Client(server, expected)
            with client.http, ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(client, range(REQUESTS)))
            assert client.wrong == []
            assert client.answered > REQUESTS / 2
            wait_until(lambda: server.app.state.server.drain.running == 0)
            wait_until(lambda: llm.metrics().running + llm.metrics().waiting == 0)
        metrics = llm.metrics()
        assert metrics.ended["cancelled"] > 0
        assert metrics.ended["failed"] == 0
        assert (metrics.pages_used, metrics.pages_free + metrics.pages_cached) == (0, 60)


def torn(dice: random.Random) -> bytes:
    """A body that is no JSON any more."""
    while True:
        data = bytearray(body("AK", stop=["a", "b"], logit_bias={"3": 1}))
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(data))
            data[place : place + dice.randint(0, 3)] = bytes(dice.choices(b'{}[]",:\\\x00\xff 1', k=dice.randint(0, 2)))
        try:
            json.loads(bytes(data))
        except ValueError:
            return bytes(data)


def wrong_schema(dice: random.Random) -> bytes:
    """A request for a form that there is none of."""
    broken = dice.choice(
        [
            {dice.choice(sorted(REFUSED)): dice.choice([{}, [], 1])},
            {"type": dice.choice(["strin", "", 5, {}, ["object", "no"]])},
            {"type": "object", "properties": dice.choice([[], 1, "a", {"a": 3}, {"a": {"type": "none"}}])},
            {"type": "array", "items": dice.choice([1, "a"])},
            {"$ref": dice.choice(["#/nowhere", "http://example.org/schema", 5])},
            {"type": "string", "pattern": dice.choice(["(", "[", "*", 5])},
            {"type": "integer", "minimum": dice.choice(["a", [], {}])},
        ]
    )
    for _ in range(dice.randrange(4)):
        broken = {"type": "object", "properties": {"inner": broken}, "required": ["inner"]}
    form = {"type": "json_schema", "json_schema": {"name": "wrong", "schema": broken}}
    return body("AK", response_format=form)


@pytest.mark.parametrize("make", [torn, wrong_schema])
def test_a_thousand_malformed_requests(tmp_path_factory, make):
    path = tiny_model(tmp_path_factory.mktemp("tiny"))
    with (
        halfbyte.load(path, backend="reference", context=64) as llm,
        running(Served(llm, "tiny")) as server,
        httpx.Client(base_url=server.url, headers={"content-type": "application/json"}) as http,
    ):
        for number in range(MALFORMED // 2):
            content = make(random.Random(number))
            answer = http.post("/v1/chat/completions", content=content)
            assert 400 <= answer.status_code < 500, content
            assert answer.json()["error"]["message"]
        assert http.post("/v1/chat/completions", content=body("the", max_tokens=1)).status_code == 200
        assert llm.metrics().pages_used == 0
