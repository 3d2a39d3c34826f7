"""`/v1/completions`."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.responses import Response

from ..runtime.async_stream import AsyncStream
from ..runtime.completion import StreamEvent
from ..runtime.timings import Timings
from .answers import together
from .call import Call
from .chat import FINGERPRINT
from .completion_request import CompletionRequest, read_completion
from .events import Event, EventStream
from .json_response import JsonResponse
from .logprobs import CompletionLogprobs
from .meter import ServerMeter
from .usage import add_usage, speeds, usage


async def completions(call: Call) -> Response:
    """The continuation of one text or of several."""
    request = read_completion(call)
    streams, echoes = await _started(request)
    answer = CompletionAnswer(request, streams, echoes, call.server.meter)
    if request.stream:
        return EventStream(answer.chunks(), keep_alive=call.server.config.keep_alive)
    return JsonResponse(await answer.whole())


async def _started(request: CompletionRequest) -> tuple[list[AsyncStream], list[str]]:
    """The streams of all answers, and what their texts begin with: all or none."""
    streams: list[AsyncStream] = []
    try:
        echoes = [await _spelt(request, prompt) for prompt in request.prompts]
        for prompt in request.prompts:
            streams += await request.choice.llm.astreams(prompt, request.n, **request.options)
    except BaseException:
        for stream in streams:
            await stream.aclose()
        raise
    return streams, echoes


async def _spelt(request: CompletionRequest, prompt: str | list[int]) -> str:
    if not request.echo:
        return ""
    return prompt if isinstance(prompt, str) else await asyncio.to_thread(request.choice.llm.detokenize, prompt)


class CompletionAnswer:
    """All answers to all prompts, in the order of the prompts, as chunks or whole."""

    def __init__(
        self, request: CompletionRequest, streams: Sequence[AsyncStream], echoes: Sequence[str], meter: ServerMeter
    ) -> None:
        self._request, self._streams, self._meter = request, streams, meter
        self._echoes = [echo for echo in echoes for _ in range(request.n)]
        self._logprobs = [CompletionLogprobs(request.choice.llm.tokenizer) for _ in streams]
        self._timings: dict[int, Timings] = {}
        self._head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": request.choice.name,
            "system_fingerprint": FINGERPRINT,
        }

    async def chunks(self) -> AsyncGenerator[Event]:
        """As events."""
        for index, echo in enumerate(self._echoes):
            if echo:
                yield self._chunk([_choice(index, echo)])
        async with aclosing(together(self._streams)) as events:
            async for index, event in events:
                self._note(index, event)
                more = {} if event.timings is None else {"timings": speeds(event.timings)}
                piece = _choice(index, event.text, event.finish_reason, self._entry(index, event.logprobs))
                yield self._chunk([piece], **more)
        if self._request.usage:
            yield self._chunk([], usage=self._usage())

    async def whole(self) -> dict[str, Any]:
        """As one object."""
        texts = [[echo] for echo in self._echoes]
        logprobs: list[list[Any]] = [[] for _ in self._streams]
        reasons: dict[int, str | None] = {}
        async with aclosing(together(self._streams)) as events:
            async for index, event in events:
                self._note(index, event)
                texts[index].append(event.text)
                logprobs[index] += event.logprobs
                reasons[index] = event.finish_reason
        choices = [
            _choice(index, "".join(pieces), reasons[index], self._entry(index, logprobs[index]))
            for index, pieces in enumerate(texts)
        ]
        return {**self._head, "choices": choices, "usage": self._usage(), "timings": speeds(self._timings[0])}

    def _note(self, index: int, event: StreamEvent) -> None:
        if event.timings is not None:
            self._timings[index] = event.timings
            self._meter.answered(event.timings)

    def _entry(self, index: int, tokens: Sequence[Any]) -> dict[str, Any] | None:
        return self._logprobs[index].of(tokens) if self._request.logprobs else None

    def _usage(self) -> dict[str, Any]:
        n = self._request.n
        timings = [self._timings[index] for index in range(len(self._streams))]
        return add_usage([usage(timings[start : start + n]) for start in range(0, len(timings), n)])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> Event:
        if self._request.usage:
            more.setdefault("usage", None)
        return Event({**self._head, "choices": choices, **more})


def _choice(index: int, text: str, reason: str | None = None, logprobs: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
