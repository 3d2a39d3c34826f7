"""`read_body`: what a client sends, within its limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive

from .config import ServerConfig
from .errors import ApiError


class ClientGone(Exception):
    """Nobody is there any more to be answered."""


async def read_body(receive: Receive, headers: Headers, config: ServerConfig) -> bytes:
    """All of a body.

    Raises `ApiError` for one that is too large, as soon as that is known, or too slow; `ClientGone`.
    """
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > config.max_body:
        raise _too_large(config)
    try:
        async with asyncio.timeout(config.body_timeout):
            return await _read(receive, config)
    except TimeoutError:
        raise ApiError(
            408,
            f"the body did not arrive within {config.body_timeout:g} seconds",
            code="body_timeout",
            headers={"x-should-retry": "false"},
        ) from None


async def _read(receive: Receive, config: ServerConfig) -> bytes:
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > config.max_body:
            raise _too_large(config)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _too_large(config: ServerConfig) -> ApiError:
    return ApiError(413, f"the body has more than the {config.max_body} bytes that are allowed", code="body_too_large")
