"""`/v1/completions`."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from starlette.responses import Response

from ..runtime.async_stream import AsyncStream
from ..runtime.sampling.logprobs import TokenLogprobs
from ..runtime.timings import Timings
from .answers import together
from .call import Call
from .chat import FINGERPRINT
from .completion_request import CompletionRequest, read_completion
from .echo import Echo, echo_of
from .events import Event, EventStream
from .json_response import JsonResponse
from .logprobs import CompletionLogprobs
from .meter import ServerMeter
from .usage import add_usage, read_only, speeds, usage


async def completions(call: Call) -> Response:
    """The continuation of one text or of several."""
    request = read_completion(call)
    echoes = await _echoes(call, request)
    streams = [] if request.silent else await _started(request)
    answer = CompletionAnswer(request, streams, echoes, call.server.meter)
    if request.stream:
        return EventStream(answer.chunks(), keep_alive=call.server.config.keep_alive)
    return JsonResponse(await answer.whole())


async def _echoes(call: Call, request: CompletionRequest) -> list[Echo]:
    """What the text of each prompt's answers begins with."""
    if not request.echo:
        return [Echo("", 0)] * len(request.prompts)
    adapters = request.options.get("adapters")
    return [
        await echo_of(call.server, request.choice.llm, prompt, request.logprobs, adapters) for prompt in request.prompts
    ]


async def _started(request: CompletionRequest) -> list[AsyncStream]:
    """The streams of all answers: all or none."""
    streams: list[AsyncStream] = []
    try:
        for prompt in request.prompts:
            streams += await request.choice.llm.astreams(prompt, request.n, **request.options)
    except BaseException:
        for stream in streams:
            await stream.aclose()
        raise
    return streams


class CompletionAnswer:
    """All answers to all prompts, in the order of the prompts, as chunks or whole."""

    def __init__(
        self, request: CompletionRequest, streams: Sequence[AsyncStream], echoes: Sequence[Echo], meter: ServerMeter
    ) -> None:
        self._request, self._streams, self._meter = request, streams, meter
        self._echoes = [echo for echo in echoes for _ in range(request.n)]
        self._logprobs = [CompletionLogprobs(request.choice.llm.tokenizer) for _ in self._echoes]
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
        async with aclosing(self._parts()) as parts:
            async for index, part in parts:
                entry = self._logprobs[index].of(part.tokens) if self._request.logprobs is not None else None
                more = {} if part.timings is None else {"timings": speeds(part.timings)}
                yield self._chunk([_choice(index, part.text, part.reason, entry)], **more)
        if self._request.usage:
            yield self._chunk([], usage=self._usage())

    async def whole(self) -> dict[str, Any]:
        """As one object."""
        parts: list[list[_Part]] = [[] for _ in self._echoes]
        async with aclosing(self._parts()) as coming:
            async for index, part in coming:
                parts[index].append(part)
        choices = []
        for index, some in enumerate(parts):
            tokens = [token for part in some for token in part.tokens]
            entry = self._logprobs[index].of(tokens) if self._request.logprobs is not None else None
            choices.append(_choice(index, "".join(part.text for part in some), some[-1].reason, entry))
        more = {"timings": speeds(self._timings[0])} if self._timings else {}
        return {**self._head, "choices": choices, "usage": self._usage(), **more}

    async def _parts(self) -> AsyncGenerator[tuple[int, _Part]]:
        """What each answer consists of, as it comes: its prompt if that is wanted, then what was written."""
        if self._request.echo:
            for index, echo in enumerate(self._echoes):
                yield index, _Part(echo.text, echo.tokens, "length" if self._request.silent else None)
        async with aclosing(together(self._streams)) as events:
            async for index, event in events:
                if event.timings is not None:
                    self._timings[index] = event.timings
                    self._meter.answered(event.timings)
                yield index, _Part(event.text, event.logprobs, event.finish_reason, event.timings)

    def _usage(self) -> dict[str, Any]:
        n = self._request.n
        if self._request.silent:
            return add_usage([read_only(echo.count) for echo in self._echoes[::n]])
        timings = [self._timings[index] for index in range(len(self._streams))]
        return add_usage([usage(timings[start : start + n]) for start in range(0, len(timings), n)])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> Event:
        if self._request.usage:
            more.setdefault("usage", None)
        return Event({**self._head, "choices": choices, **more})


class _Part(NamedTuple):
    text: str
    tokens: Sequence[TokenLogprobs | int] = ()
    reason: str | None = None
    timings: Timings | None = None


def _choice(index: int, text: str, reason: str | None = None, logprobs: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
