"""`Call`: one request on its way through the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from .config import ServerConfig
from .drain import Drain
from .fields import Fields
from .one_by_one import OneByOne
from .served import Served

if TYPE_CHECKING:
    from .meter import ServerMeter


@dataclass(frozen=True)
class Server:
    """What all requests share. Vectors, and scores of prompts, are made one request after the other."""

    served: Served
    config: ServerConfig
    drain: Drain
    meter: ServerMeter
    vectors: OneByOne
    scores: OneByOne


@dataclass(frozen=True)
class Call:
    """One request: what it shares with others, its head, and the fields of its body."""

    server: Server
    request: Request
    fields: Fields = field(default_factory=lambda: Fields({}))


Handler = Callable[[Call], Awaitable[Response]]
"""Answers a call, or raises."""
