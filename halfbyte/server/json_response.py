"""`JsonResponse`, and the errors that are sent as one."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .errors import ApiError
from .json_text import encode

TOO_SLOW = 408
LINGER = 2.0
"""Seconds that a client gets to stop sending a body that nobody reads."""


class JsonResponse(Response):
    """A JSON object."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The body."""
        return encode(content)


def error_response(error: ApiError) -> JsonResponse:
    """An error in OpenAI's form, after the whole body of the request was read."""
    return JsonResponse(error.body, error.status, error.headers)


class Refusal(JsonResponse):
    """An error for a request whose body was not read, or not to its end; the connection closes behind it.

    What a client still sends is thrown away for a while: most read the answer only after they have sent all, and a
    socket closed over unread bytes would take the answer from them.
    """

    def __init__(self, error: ApiError) -> None:
        self._linger = 0.0 if error.status == TOO_SLOW else LINGER
        super().__init__(error.body, error.status, error.headers | {"connection": "close"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it at once, and end when the client has."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._linger):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})
