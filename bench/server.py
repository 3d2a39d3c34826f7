"""Does the server keep its answers, memory and pages under many clients? `python -m bench.server MODEL [--json]`

Starts `halfbyte serve MODEL` and sends rounds of 200 chat requests from 16 clients: a quarter goes away before the
answer is whole, one in ten is malformed, half of the others stream. Each answer at temperature 0 must equal the one
that the same question got alone. Reported: waits for the first token as clients see them, tokens a second, memory of
the server's process after each round, and pages in use at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

REQUESTS, CLIENTS, QUESTIONS, TOKENS = 200, 16, 40, 32
LEAVES_WITHIN_S = 0.5


class Serving:
    """`halfbyte serve` as a process of its own."""

    def __init__(self, model: str) -> None:
        words = [sys.executable, "-m", "halfbyte", "serve", model, "--port", "0", "-c", "1024", "--queue", "256"]
        self.process = subprocess.Popen(
            [*words, "--load", "kv_memory=128MB"], stderr=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r" at http://([\d.]+):(\d+)", line)
            if found:
                self.host, self.port = found[1], int(found[2])
                break
        else:
            raise SystemExit("the server did not start")
        self.reader = ThreadPoolExecutor(1)  # a pipe that nobody empties would stop it
        self.reader.submit(self.process.stderr.read)

    def open(self) -> HTTPConnection:
        return HTTPConnection(self.host, self.port, timeout=300)

    @property
    def memory(self) -> float:
        """MB that the process has in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1000

    def metrics(self) -> dict[str, float]:
        connection = self.open()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return {name: float(value) for name, value in re.findall(r"^(halfbyte_\w+(?:{[^}]*})?) (\S+)$", text, re.M)}

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


@dataclass
class Round:
    """What one round brought; seconds."""

    wrong: int = 0
    answered: int = 0
    first_token: list[float] = field(default_factory=list)
    seconds: float = 0.0


def ask(connection: HTTPConnection, question: int, *, stream: bool) -> HTTPResponse:
    content = f"Tell me something about the number {question} and about {question * 7}."
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": TOKENS, "temperature": 0}
    head = {"content-type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body | {"stream": stream}), head)
    return connection.getresponse()


def whole(serving: Serving, question: int) -> str:
    answer = json.loads(ask(serving.open(), question, stream=False).read())
    return str(answer["choices"][0]["message"]["content"])


def streamed(serving: Serving, question: int, waits: list[float]) -> str:
    """The text of a stream; how long its first piece took is put to `waits`."""
    started, text = time.perf_counter(), ""
    for line in ask(serving.open(), question, stream=True):
        if line.startswith(b"data: {"):
            piece = "".join(one["delta"].get("content", "") for one in json.loads(line[6:])["choices"])
            if piece and not text:
                waits.append(time.perf_counter() - started)
            text += piece
    return text


def leave(serving: Serving, question: int, dice: random.Random) -> None:
    connection = serving.open()
    connection.connect()
    connection.sock.settimeout(dice.random() * LEAVES_WITHIN_S + 0.001)
    try:
        ask(connection, question, stream=dice.random() < 0.5).read()
    except TimeoutError:
        pass
    finally:
        connection.close()


def malformed(serving: Serving, dice: random.Random) -> bool:
    connection = serving.open()
    body = '{"messages": [{"role": "user", "content": "x"}]}'[: dice.randrange(40)]
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return connection.getresponse().status == 400


def run_round(serving: Serving, alone: dict[int, str], number: int) -> Round:
    result = Round()

    def one(index: int) -> None:
        dice, question = random.Random(number * REQUESTS + index), index % QUESTIONS
        if index % 10 == 0:
            result.wrong += not malformed(serving, dice)
        elif index % 4 == 1:
            leave(serving, question, dice)
        else:
            stream = dice.random() < 0.5
            text = streamed(serving, question, result.first_token) if stream else whole(serving, question)
            result.wrong += text != alone[question]
            result.answered += 1

    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, range(REQUESTS)))
    result.seconds = time.perf_counter() - started
    return result


def measure(model: str, rounds: int) -> dict[str, Any]:
    serving = Serving(model)
    try:
        alone = {question: whole(serving, question) for question in range(QUESTIONS)}
        results, memory = [], [serving.memory]
        before = serving.metrics()["halfbyte_generated_tokens_total"]
        for number in range(rounds):
            results.append(run_round(serving, alone, number))
            memory.append(serving.memory)
        time.sleep(1)
        metrics = serving.metrics()
    finally:
        code = serving.stop()
    waits = sorted(wait for result in results for wait in result.first_token)
    seconds = sum(result.seconds for result in results)
    return {
        "requests": rounds * REQUESTS,
        "answered": sum(result.answered for result in results),
        "wrong": sum(result.wrong for result in results),
        "first_token_p50_s": statistics.median(waits),
        "first_token_p99_s": waits[int(len(waits) * 0.99)],
        "generated_tok_s": (metrics["halfbyte_generated_tokens_total"] - before) / seconds,
        "memory_mb": memory,
        "pages_used": metrics["halfbyte_pages_used"],
        "cancelled": metrics['halfbyte_ended_total{reason="cancelled"}'],
        "failed": metrics['halfbyte_ended_total{reason="failed"}'],
        "exit_code": code,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    values = parser.parse_args()
    figures = measure(values.model, values.rounds)
    if values.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        shown = " ".join(f"{one:.1f}" for one in value) if isinstance(value, list) else f"{value:.4g}"
        print(f"{name:20} {shown}")


if __name__ == "__main__":
    main()
