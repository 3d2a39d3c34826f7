"""`Endpoint`: what all requests go through, from the key to the error."""

from __future__ import annotations

import asyncio
import logging
import time
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
from .json_text import encode
from .keys import check_key

log = logging.getLogger("halfbyte.server")

GONE = 499
"""The status in logs and metrics of a request whose client went away; nobody receives it."""
LARGE = 2**16
"""Bytes of JSON that take long enough to parse for other requests to notice."""


class JsonResponse(Response):
    """A JSON object."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The body."""
        return encode(content)


def error_response(error: ApiError) -> JsonResponse:
    """An error in OpenAI's form."""
    return JsonResponse(error.body, error.status, error.headers)


class Endpoint:
    """An ASGI application around a handler. `takes_body`: a JSON object; `needs_key`: where there are keys."""

    def __init__(self, server: Server, handler: Handler, *, takes_body: bool = True, needs_key: bool = True) -> None:
        self._server, self._handler = server, handler
        self._takes_body, self._needs_key = takes_body, needs_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a client that goes away cancels all of it."""
        request = Request(scope, receive)
        started, status = time.perf_counter(), GONE

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._serve(request, noting)
        except ClientGone:
            status = GONE
        except Exception as error:
            if status != GONE:  # there is an answer on its way already
                raise
            await _response_to(error, request)(scope, receive, noting)
        finally:
            seconds = time.perf_counter() - started
            self._server.meter.count(scope["path"], status, seconds)
            log.info("%s %s %d %.3f s", scope["method"], scope["path"], status, seconds)

    async def _serve(self, request: Request, send: Send) -> None:
        if self._needs_key:
            check_key(request.headers, self._server.config.keys)
        if not self._takes_body:
            await self._answer(Call(self._server, request), send)
            return
        with self._server.drain.request():
            check_content_type(request.headers)
            body = await read_body(request.receive, request.headers, self._server.config)
            given = await asyncio.to_thread(parse_object, body) if len(body) > LARGE else parse_object(body)
            await unless_gone(request.receive, self._answer(Call(self._server, request, Fields(given)), send))

    async def _answer(self, call: Call, send: Send) -> None:
        try:
            response = await self._handler(call)
        except Exception as error:
            response = _response_to(error, call.request)
        await response(call.request.scope, call.request.receive, send)


def _response_to(error: Exception, request: Request) -> JsonResponse:
    shown = api_error(error)
    if shown.status == 500:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(shown)


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
