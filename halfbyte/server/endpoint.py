"""`Endpoint`: what all requests go through, from the key to the error."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Coroutine
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from .body import ClientGone, read_body
from .call import Call, Handler, Server
from .errors import ApiError, api_error
from .fields import Fields
from .json_body import parse_object
from .json_response import Refusal, error_response
from .keys import check_key

log = logging.getLogger("halfbyte.server")

GONE = 499
"""The status in logs and metrics of a request whose client went away; nobody receives it."""
LARGE = 2**16
"""Bytes of JSON that take long enough to parse for other requests to notice."""


class Exchange:
    """A request and what became of it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.request = Request(scope, receive)
        self.id = uuid.uuid4().hex
        self.status = GONE
        self.problem = ""
        self.unread = True
        self._send = send

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer, and note how it begins."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message["headers"], (b"x-request-id", self.id.encode())]}
        await self._send(message)

    async def respond(self, response: Response) -> None:
        """Send an answer."""
        await response(self.request.scope, self.request.receive, self.send)


class Endpoint:
    """An ASGI application around a handler. `path` is what metrics call it.

    `takes_body`: a JSON object; `needs_key`: where there are keys.
    """

    def __init__(
        self, server: Server, path: str, handler: Handler, *, takes_body: bool = True, needs_key: bool = True
    ) -> None:
        self._server, self._path, self._handler = server, path, handler
        self._takes_body, self._needs_key = takes_body, needs_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a client that goes away cancels all of it."""
        exchange, started = Exchange(scope, receive, send), time.perf_counter()
        try:
            await self._serve(exchange)
        except ClientGone:
            exchange.status = GONE
        except Exception as error:
            if exchange.status != GONE:  # there is an answer on its way already
                raise
            await exchange.respond(self._response_to(error, exchange))
        finally:
            seconds = time.perf_counter() - started
            self._server.meter.count(self._path, exchange.status, seconds)
            path = scope.get("raw_path", b"").decode("ascii", "replace")  # as it came: no line breaks
            log.info("%s %s %d %.3f s%s", scope["method"], path, exchange.status, seconds, exchange.problem)

    async def _serve(self, exchange: Exchange) -> None:
        headers, config = exchange.request.headers, self._server.config
        if self._needs_key:
            check_key(headers, config.keys)
        if not self._takes_body:
            await self._answer(Call(self._server, exchange.request), exchange)
            return
        with self._server.drain.request():
            check_content_type(headers)
            body = await read_body(exchange.request.receive, headers, config)
            exchange.unread = False
            given = await asyncio.to_thread(parse_object, body) if len(body) > LARGE else parse_object(body)
            answer = self._answer(Call(self._server, exchange.request, Fields(given)), exchange)
            await unless_gone(exchange.request.receive, answer)

    async def _answer(self, call: Call, exchange: Exchange) -> None:
        try:
            response = await self._handler(call)
        except Exception as error:
            response = self._response_to(error, exchange)
        await exchange.respond(response)

    def _response_to(self, error: Exception, exchange: Exchange) -> Response:
        shown, request = api_error(error), exchange.request
        exchange.problem = ": " + "".join(letter if letter.isprintable() else " " for letter in str(shown))
        if shown.status == 500:
            log.error("%s %s failed (%s)", request.method, request.url.path, exchange.id, exc_info=error)
        if shown.status == 429:
            shown.headers["retry-after"] = str(self._server.meter.retry_after)
        return Refusal(shown) if exchange.unread else error_response(shown)


def check_content_type(headers: Headers) -> None:
    """Raise `ApiError` for a body that says it is something else than JSON."""
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            415, f"the body must be JSON: send content-type: application/json, not {kind[:80]}", code="not_json"
        )


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do `work`, and cancel it when the client goes away. Raises `ClientGone`, and what `work` raises."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        task.result()
    finally:
        for one in (task, watch):
            one.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
