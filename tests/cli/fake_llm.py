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
from types import TracebackType
from typing import Any, Self

import halfbyte
from halfbyte.errors import ContextExceededError
from halfbyte.runtime.completion import Completion, StreamEvent
from halfbyte.runtime.sampling.logprobs import TokenLogprobs
from halfbyte.runtime.timings import Timings

SLOW = "slow"
"""A question that holds this word is answered without end, a word each 20 ms."""


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

    def __init__(self, model: object, **options: Any) -> None:
        self.model = model
        self.options = options
        self.closed = False
        self.calls: list[tuple[object, dict[str, Any]]] = []

    def tokenize(self, text: str, special: bool = False, bos: bool | None = None) -> list[int]:
        return [ord(letter) for letter in text]

    def stream(self, prompt: str | Sequence[int], **options: Any) -> FakeStream:
        self.calls.append((prompt, options))
        text = prompt if isinstance(prompt, str) else "".join(map(chr, prompt))
        return FakeStream(self._events(f"<{text}>", options))

    def stream_chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> FakeStream:
        self.calls.append(([dict(message) for message in messages], options))
        question = messages[-1]["content"]
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

    halfbyte.load = FakeLLM  # type: ignore[assignment,misc]
    os.environ.setdefault("TERM", "xterm")
    sys.exit(main())
