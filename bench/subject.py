"""`Subject`: the model that `bench.engine` and `bench.soak` measure, and what they ask of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import halfbyte
from halfbyte import LLM

CODE = "".join(
    f"def area_{name}(width, height):\n    total = width * height\n    return round(total, {i})\n\n\n"
    for i, name in enumerate(("of_a_square", "of_a_room", "of_a_field", "of_a_page", "of_a_door", "of_a_wall"))
)


@dataclass(frozen=True)
class Subject:
    """The model under test."""

    model: str
    threads: int

    @contextmanager
    def load(self, **options: Any) -> Iterator[LLM]:
        """With pages for everything that is asked, and no end before an answer has the length asked for.

        Without speculation, which would let all times depend on the text.
        """
        options = {"context": 8192, "kv_memory": "1GB", "threads": self.threads, "speculation": "off", **options}
        with halfbyte.load(self.model, **options) as llm:
            llm._engine._eog_ids = frozenset()
            llm.generate([1, 2, 3], max_tokens=4)
            yield llm


def tokens(count: int, seed: int) -> list[int]:
    """Random ids."""
    draw = random.Random(seed)
    return [draw.randrange(200, 30_000) for _ in range(count)]


def seconds(work: Callable[[], object]) -> float:
    """Of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def percentile(values: list[float], share: float) -> float:
    """Of unsorted values."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def system_text(llm: LLM, seed: int, length: int = 1500) -> str:
    """Text of about `length` tokens."""
    draw, words = (
        random.Random(seed),
        ["water", "city", "answer", "river", "music", "winter", "stone"],
    )
    text = f"Rules, number {seed}."
    while len(llm.tokenize(text)) < length:
        text += " " + " ".join(draw.choices(words, k=40)) + "."
    return text


class Watch:
    """Notes when an engine's executable runs: (start, end, sequences)."""

    def __init__(self, llm: LLM) -> None:
        self.runs: list[tuple[float, float, int]] = []
        executable: Any = llm._engine._executable
        self._run = executable.run
        executable.run = self._timed

    def _timed(self, batch: Any, logits: Any) -> None:
        start = time.perf_counter()
        self._run(batch, logits)
        self.runs.append((start, time.perf_counter(), len(batch.seq_len)))
