"""`/v1/responses`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import Any

from starlette.responses import Response

from ..runtime.async_stream import AsyncStream
from ..runtime.completion import StreamEvent
from ..runtime.timings import Timings
from .answers import together
from .call import Call
from .events import Event, EventStream
from .json_response import JsonResponse
from .logprobs import chat_logprobs
from .meter import ServerMeter
from .response_items import ResponseItems, Tale, new_id
from .response_request import ResponseRequest, read_response
from .usage import speeds


async def responses(call: Call) -> Response:
    """The answer to a conversation, as items."""
    request = read_response(call)
    (stream,) = await request.speech.start(request.messages, 1, request.options)
    answer = ResponseAnswer(request, stream, call.server.meter)
    if request.stream:
        return EventStream(answer.events(), keep_alive=call.server.config.keep_alive, done=False)
    return JsonResponse(await answer.whole())


class ResponseAnswer:
    """One answer, as events or whole."""

    def __init__(self, request: ResponseRequest, stream: AsyncStream, meter: ServerMeter) -> None:
        self._request, self._stream, self._meter = request, stream, meter
        self._parts = request.speech.parts(stream)
        self._items = ResponseItems()
        self._id, self._created = new_id("resp"), int(time.time())
        self._thought = 0
        self._status = "in_progress"
        self._timings: Timings | None = None

    async def events(self) -> AsyncGenerator[Event]:
        """As events, numbered, from the response that begins to the one that has ended."""
        numbers = count()
        async with aclosing(self._tales()) as tales:
            async for kind, fields in tales:
                yield Event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    async def whole(self) -> dict[str, Any]:
        """As one object."""
        async with aclosing(self._tales()) as tales:
            async for _ in tales:
                pass
        return self._response()

    async def _tales(self) -> AsyncGenerator[Tale]:
        for kind in ("response.created", "response.in_progress"):
            yield kind, {"response": self._response()}
        async with aclosing(together([self._stream])) as events:
            async for _, event in events:
                for tale in self._told(event):
                    yield tale
        yield f"response.{self._status}", {"response": self._response()}

    def _told(self, event: StreamEvent) -> list[Tale]:
        deltas = self._parts.push(event.text)
        if event.timings is not None:
            deltas += self._parts.finish()
        if deltas and all("reasoning_content" in delta for delta in deltas):
            self._thought += len(event.ids)
        logprobs = self._logprobs(event)
        tales: list[Tale] = []
        for delta in deltas:
            tales += self._items.add(delta, logprobs if "content" in delta else [])
            logprobs = [] if "content" in delta else logprobs
        if event.timings is None:
            return tales
        self._timings = event.timings
        self._meter.answered(event.timings)
        self._status = "incomplete" if event.finish_reason == "length" else "completed"
        if not self._items.items:
            tales += self._items.add({"content": ""}, logprobs)
        return tales + self._items.close(self._status)

    def _logprobs(self, event: StreamEvent) -> list[Any]:
        if not self._request.logprobs:
            return []
        content: list[Any] = chat_logprobs(self._request.choice.llm.tokenizer, event.logprobs)["content"]
        return content

    def _response(self) -> dict[str, Any]:
        cut = {"reason": "max_output_tokens"} if self._status == "incomplete" else None
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": self._request.choice.name,
            "status": self._status,
            "error": None,
            "incomplete_details": cut,
            "output": list(self._items.items),
            "previous_response_id": None,
            "background": False,
            "service_tier": "default",
            "store": False,
            "truncation": "disabled",
            **self._request.echo,
            "usage": self._usage(),
            **({} if self._timings is None else {"timings": speeds(self._timings)}),
        }

    def _usage(self) -> dict[str, Any] | None:
        timings = self._timings
        if timings is None:
            return None
        return {
            "input_tokens": timings.prompt_tokens,
            "input_tokens_details": {"cached_tokens": timings.cached_tokens},
            "output_tokens": timings.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": self._thought},
            "total_tokens": timings.prompt_tokens + timings.completion_tokens,
        }
