"""Does an engine that is asked for anything at any time keep its memory? `python -m bench.soak MODEL [--seconds S]`

Several threads ask for answers, cancel, branch, read and give deadlines, over pages that are too few, with swap.
Answers are compared with those that each prompt has alone; resident memory is sampled, and its slope over the second
half is what counts.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from bench.subject import Subject, tokens
from halfbyte import LLM, DeadlineExceededError

ANSWER = 24
PAGE = 4096


def resident() -> float:
    """Bytes of this process that are in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(PAGE)


class Known(NamedTuple):
    """A prompt, its greedy answer and a checksum of the logits of its first tokens."""

    prompt: list[int]
    answer: tuple[int, ...]
    read: int


def read(llm: LLM, prompt: list[int]) -> int:
    """A checksum of logits."""
    return crc32(llm.logits(prompt[:40]).data)


class Caller(threading.Thread):
    """Asks until the end; `wrong` counts answers that were not those of the prompt alone."""

    def __init__(self, llm: LLM, known: list[Known], seed: int, end: float) -> None:
        super().__init__()
        self.llm, self.known, self.draw, self.end_at = llm, known, random.Random(seed), end
        self.asked = self.wrong = 0

    def run(self) -> None:
        """The thread's life."""
        while time.perf_counter() < self.end_at:
            known = self.draw.choice(self.known)
            self.draw.choice([self.whole, self.cut, self.branched, self.late, self.logits])(known)
            self.asked += 1

    def whole(self, known: Known) -> None:
        """The answer, with some priority."""
        count = self.draw.randint(1, ANSWER)
        done = self.llm.generate(known.prompt, max_tokens=count, priority=self.draw.randint(-1, 1))
        self.wrong += done.ids != known.answer[:count]

    def cut(self, known: Known) -> None:
        """Some of the answer, or not even the prompt."""
        with self.llm.stream(known.prompt, max_tokens=ANSWER) as stream:
            time.sleep(self.draw.random() * 0.1)
            if self.draw.random() < 0.5:
                event = next(stream)
                self.wrong += event.ids != known.answer[: len(event.ids)]

    def branched(self, known: Known) -> None:
        """Two branches of an answer; the greedy one goes on as the answer does."""
        with self.llm.stream(known.prompt, max_tokens=ANSWER) as stream:
            begun = next(stream).ids
            with stream.fork(max_tokens=4) as same, stream.fork(max_tokens=4, temperature=1.0) as other:
                self.wrong += (begun + same.collect().ids) != known.answer[: len(begun) + 4]
                other.collect()

    def late(self, known: Known) -> None:
        """In time or not at all."""
        with suppress(DeadlineExceededError):
            done = self.llm.generate(known.prompt, max_tokens=ANSWER, timeout=self.draw.random() * 0.5)
            self.wrong += done.ids != known.answer

    def logits(self, known: Known) -> None:
        """Logits of the first tokens, to the bit."""
        self.wrong += read(self.llm, known.prompt) != known.read


def soak(subject: Subject, seconds: float, callers: int) -> dict[str, Any]:
    """Figures after `seconds` of it."""
    draw = random.Random(1)
    prompts = [tokens(draw.choice([5, 90, 300]), seed) + tokens(draw.randint(1, 50), seed + 99) for seed in range(16)]
    with subject.load(prefix_cache=False) as llm:
        known = [Known(prompt, llm.generate(prompt, max_tokens=ANSWER).ids, read(llm, prompt)) for prompt in prompts]
        page_bytes = llm._engine.page_bytes
    options = {"kv_memory": 48 * page_bytes, "swap_space": 64 * page_bytes, "speculation": "ngram", "context": 1024}
    with subject.load(**options) as llm:
        start = time.perf_counter()
        threads = [Caller(llm, known, seed, start + seconds) for seed in range(callers)]
        for thread in threads:
            thread.start()
        memory: list[tuple[float, float]] = []
        while any(thread.is_alive() for thread in threads):
            memory.append((time.perf_counter() - start, resident()))
            time.sleep(0.2)
        for thread in threads:
            thread.join()
        llm._engine.call(lambda loop: loop.scheduler.check_integrity())
        return report(llm, threads, memory)


def report(llm: LLM, threads: list[Caller], memory: list[tuple[float, float]]) -> dict[str, Any]:
    """What became of it."""
    metrics = llm.metrics()
    times, bytes_ = np.array(memory[len(memory) // 2 :]).T
    return {
        "asked": sum(thread.asked for thread in threads),
        "wrong": sum(thread.wrong for thread in threads),
        "ended": metrics.ended,
        "preempted": metrics.preempted,
        "steps": metrics.steps,
        "pages_used": metrics.pages_used,
        "resident_mb": [round(memory[at][1] / 1e6, 1) for at in (0, len(memory) // 4, len(memory) // 2, -1)],
        "slope_kb_s": round(float(np.polyfit(times, bytes_, 1)[0]) / 1e3, 2),
    }


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--callers", type=int, default=6, help="threads that ask (default: 6)")
    parser.add_argument("--threads", type=int, default=2, help="threads that compute (default: 2)")
    args = parser.parse_args()
    subject = Subject(str(Path(args.model).resolve()), args.threads)
    print(json.dumps(soak(subject, args.seconds, args.callers), indent=2))


if __name__ == "__main__":
    main()
