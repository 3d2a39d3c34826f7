"""A model that echoes: the face of `LLM` that the commands use, without weights.

`python -m tests.cli.fake_llm WORDS...` runs `halfbyte WORDS...` with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import numpy as np

import halfbyte
from halfbyte.errors import ContextExceededError, FormatError
from halfbyte.runtime.completion import Completion, StreamEvent
from halfbyte.runtime.sampling.logprobs import TokenLogprobs
from halfbyte.runtime.score import Score
from halfbyte.runtime.timings import Timings
from halfbyte.text.reasoning import Reasoning
from halfbyte.text.thinking_marks import THINKING_MARKS

SLOW = "slow"
"""A question that holds this word is answered without end, a word each 20 ms."""


MARKDOWN = "# Title\n\nSome **bold** words.\n\n```python\nx = 1\n\ny = 2\n```\n\n1. one\n2. two"
"""The answer to this word."""


class FakeStream:
    """Counts how many are open."""

    open = 0

    def __init__(self, pieces: Iterator[StreamEvent]) -> None:
        self._pieces = pieces
        FakeStream.open += 1

    def __iter__(self) -> Iterator[StreamEvent]:
        return self._pieces

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        FakeStream.open -= 1


class FakeLLM:
    """Answers `<the prompt>` or, in a chat, what it was told; keeps every call in `calls`."""

    metadata: Mapping[str, object] = {}
    context = 4096
    reasoning: Reasoning | None = None

    def __init__(self, model: object, **options: Any) -> None:
        self.model = model
        self.options = options
        self.closed = False
        self.template = SimpleNamespace(reasoning=self.reasoning)
        self.calls: list[tuple[object, dict[str, Any]]] = []

    def tokenize(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        return [ord(letter) for letter in text]

    def detokenize(self, ids: Sequence[int], special: bool = False) -> str:
        return "".join(map(chr, ids))

    def render(self, messages: Sequence[Mapping[str, str]], template_kwargs: Mapping[str, Any] | None = None) -> Any:
        return np.array([ord(letter) for message in messages for letter in message["content"]], np.int64)

    def score(self, prompt: Sequence[int], logprobs: int = 0) -> Score:
        """Every second token is certain, the others are not."""
        tokens = [TokenLogprobs(i, -0.01 if n % 2 else -3.0, ((i, -0.01), (88, -5.0))) for n, i in enumerate(prompt)]
        return Score(tuple(prompt), tuple(tokens[1:]))

    def save_session(self, path: Path, prompt: Sequence[int]) -> int:
        Path(path).write_text("keys and values")
        return len(prompt)

    def load_session(self, path: Path) -> int:
        if Path(path).read_text() != "keys and values":
            raise FormatError("is damaged", path=path)
        return 7

    def stream(self, prompt: str | Sequence[int], **options: Any) -> FakeStream:
        self.calls.append((prompt, options))
        text = prompt if isinstance(prompt, str) else "".join(map(chr, prompt))
        return FakeStream(self._events(f"<{text}>", options))

    def stream_chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> FakeStream:
        self.calls.append(([dict(message) for message in messages], options))
        question = messages[-1]["content"]
        if question == "think":
            return FakeStream(self._events("<think>so and so</think>thus", options))
        if question == "markdown":
            return FakeStream(self._events(MARKDOWN, options))
        if question == "too long":
            raise ContextExceededError("the prompt has 9 tokens")
        told = [f"{message['role'][0]}:{message['content']}" for message in messages]
        return FakeStream(self._slowly() if SLOW in question else self._events(f"<{'|'.join(told)}>", options))

    def generate(self, prompt: str | Sequence[int], **options: Any) -> Completion:
        events = list(self.stream(prompt, **options))
        ids = tuple(token for event in events for token in event.ids)
        assert events[-1].timings is not None
        text = "".join(event.text for event in events)
        logprobs = () if options.get("logprobs") is None else tuple(TokenLogprobs(i, -0.5, ((i, -0.5),)) for i in ids)
        return Completion(text, ids, "stop", events[-1].timings, (1, 2), 7, logprobs)

    @contextmanager
    def trace(self, path: str) -> Iterator[None]:
        before = len(self.calls)
        yield
        Path(path).write_text(f"{len(self.calls) - before} calls")

    def info(self) -> dict[str, str | int]:
        return {"isa": "fake", "kernels": "none", "threads": 2, "packed_bytes": 10**9, "kv_bytes": 0}

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _events(self, text: str, options: Mapping[str, Any]) -> Iterator[StreamEvent]:
        n = options.get("max_tokens") or len(text)
        reason = "length" if n < len(text) else "stop"
        for letter in text[:n]:
            yield StreamEvent(letter, (ord(letter),))
        yield StreamEvent("", (), reason, Timings(3, 1, min(n, len(text)), 0.5, 0.5, 2.0))

    def _slowly(self) -> Iterator[StreamEvent]:
        while True:
            yield StreamEvent("word ", (1,))
            time.sleep(0.02)


if __name__ == "__main__":
    from halfbyte.cli.main import main

    if os.environ.get("FAKE_THINKS"):
        FakeLLM.reasoning = Reasoning(THINKING_MARKS["think"], {"enable_thinking": False})
    halfbyte.load = FakeLLM  # type: ignore[assignment,misc]
    os.environ.setdefault("TERM", "xterm")
    sys.exit(main())
