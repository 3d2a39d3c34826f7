"""`/v1/chat/completions`."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.responses import Response

from .._version import __version__
from ..runtime.async_stream import AsyncStream
from ..runtime.completion import StreamEvent
from ..runtime.timings import Timings
from .answers import together
from .call import Call
from .chat_request import ChatRequest, read_chat
from .events import Event, EventStream
from .json_response import JsonResponse
from .logprobs import chat_logprobs
from .message import Delta, Message
from .meter import ServerMeter
from .usage import speeds, usage

FINGERPRINT = f"halfbyte-{__version__}"


async def chat_completions(call: Call) -> Response:
    """The next message of a conversation."""
    request = read_chat(call)
    streams = await request.speech.start(request.messages, request.n, request.options)
    answer = ChatAnswer(request, streams, call.server.meter)
    if request.stream:
        return EventStream(answer.chunks(), keep_alive=call.server.config.keep_alive)
    return JsonResponse(await answer.whole())


class ChatAnswer:
    """`n` answers to one conversation, as chunks or whole."""

    def __init__(self, request: ChatRequest, streams: Sequence[AsyncStream], meter: ServerMeter) -> None:
        self._request, self._streams, self._meter = request, streams, meter
        self._parts = [request.speech.parts(stream) for stream in streams]
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": request.choice.name,
            "system_fingerprint": FINGERPRINT,
        }
        self._timings: dict[int, Timings] = {}
        self._thinks = [False] * len(streams)
        self._thought = 0

    async def chunks(self) -> AsyncGenerator[Event]:
        """As events: for each answer a beginning, pieces, and an end with its reason; then usage where it is wanted."""
        for index in range(len(self._streams)):
            yield self._chunk([_piece(index, {"role": "assistant", "content": ""})])
        async with aclosing(together(self._streams)) as events:
            async for index, event in events:
                for piece in self._pieces(index, event):
                    yield self._chunk([piece])
                if event.timings is not None:
                    end = _piece(index, {}, self._reason(index, event))
                    yield self._chunk([end], timings=speeds(event.timings))
        if self._request.usage:
            yield self._chunk([], usage=self._usage())

    async def whole(self) -> dict[str, Any]:
        """As one object."""
        messages = [Message() for _ in self._streams]
        logprobs: list[list[Any]] = [[] for _ in self._streams]
        reasons: dict[int, str] = {}
        async with aclosing(together(self._streams)) as events:
            async for index, event in events:
                for delta in self._deltas(index, event):
                    messages[index].add(delta)
                logprobs[index] += event.logprobs
                if event.finish_reason is not None:
                    reasons[index] = self._reason(index, event)
        choices = [
            {
                "index": index,
                "message": message.as_dict(),
                "logprobs": self._logprobs(logprobs[index]) if self._request.logprobs else None,
                "finish_reason": reasons[index],
            }
            for index, message in enumerate(messages)
        ]
        timings = speeds(self._timings[0])
        return self._object("chat.completion", choices=choices, usage=self._usage(), timings=timings)

    def _pieces(self, index: int, event: StreamEvent) -> list[dict[str, Any]]:
        pieces = [_piece(index, delta) for delta in self._deltas(index, event)]
        if event.logprobs:
            pieces = pieces or [_piece(index, {})]  # tokens that gave no text yet
            pieces[0]["logprobs"] = self._logprobs(event.logprobs)
        return pieces

    def _deltas(self, index: int, event: StreamEvent) -> list[Delta]:
        deltas = self._parts[index].push(event.text)
        if event.timings is not None:
            deltas += self._parts[index].finish()
            self._timings[index] = event.timings
            self._meter.answered(event.timings)
        if deltas:
            self._thinks[index] = "reasoning_content" in deltas[-1]
        self._thought += self._thinks[index] * len(event.ids)
        return deltas

    def _reason(self, index: int, event: StreamEvent) -> str:
        assert event.finish_reason is not None
        called = self._parts[index].called and event.finish_reason == "stop"
        return "tool_calls" if called else event.finish_reason

    def _logprobs(self, tokens: Sequence[Any]) -> dict[str, Any]:
        return chat_logprobs(self._request.choice.llm.tokenizer, tokens)

    def _usage(self) -> dict[str, Any]:
        return usage([self._timings[index] for index in sorted(self._timings)], self._thought)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> Event:
        if self._request.usage:
            more.setdefault("usage", None)
        return Event(self._object("chat.completion.chunk", choices=choices, **more))

    def _object(self, kind: str, **more: Any) -> dict[str, Any]:
        return {**self._head, "object": kind, **more}


def _piece(index: int, delta: Delta, reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
