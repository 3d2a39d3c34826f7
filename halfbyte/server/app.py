"""`build_app`: the table of routes, and how its parts are put together."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..registry import Registry
from .call import Handler, Server
from .config import ServerConfig
from .drain import Drain
from .endpoint import Endpoint
from .errors import ApiError
from .json_response import Refusal
from .meter import OTHER, ServerMeter
from .one_by_one import OneByOne
from .origin import BrowserGuard
from .page_files import page_routes
from .served import Served

POSTS: Registry[Handler] = Registry(
    "path",
    __package__,
    {
        "/v1/chat/completions": ".chat:chat_completions",
        "/v1/responses": ".responses:responses",
        "/v1/completions": ".completions:completions",
        "/v1/embeddings": ".embeddings:embeddings",
        "/tokenize": ".tokens:tokenize",
        "/detokenize": ".tokens:detokenize",
    },
)
GETS: Registry[Handler] = Registry(
    "path",
    __package__,
    {
        "/v1/models": ".models:models",
        "/v1/models/{name:path}": ".models:model",
        "/metrics": ".metrics:metrics",
        "/health": ".health:health",
    },
)
OPEN = frozenset({"/health"})
"""Served without a key."""


def build_app(served: Served, config: ServerConfig | None = None) -> Starlette:
    """An ASGI application; `app.state.server` is what its requests share. Closing the models is the caller's."""
    config = config or ServerConfig()
    most = config.max_queued_readings
    server = Server(served, config, Drain(), ServerMeter(), vectors=OneByOne(most), scores=OneByOne(most))
    routes: list[BaseRoute] = [Route(path, Endpoint(server, path, POSTS[path]), methods=["POST"]) for path in POSTS]
    routes += [
        Route(path, Endpoint(server, path, GETS[path], takes_body=False, needs_key=path not in OPEN), methods=["GET"])
        for path in GETS
    ]
    if config.page:
        routes += page_routes()
    app = Starlette(
        routes=routes,
        middleware=_middleware(config),
        exception_handlers={404: _unknown_path, 405: _wrong_method},
    )
    app.router.redirect_slashes = False
    app.state.server = server
    return app


def _middleware(config: ServerConfig) -> list[Middleware]:
    guard = Middleware(BrowserGuard, config=config)
    if not config.origins:
        return [guard]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=config.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["retry-after", "x-request-id"],
    )
    return [cors, guard]


async def _unknown_path(request: Request, error: Exception) -> Response:
    request.app.state.server.meter.count(OTHER, 404, 0.0)
    known = ", ".join([*POSTS, "/v1/models", "/health", "/metrics"])
    return Refusal(ApiError(404, f"there is no {request.url.path[:80]!r}; there are: {known}", code="not_found"))


async def _wrong_method(request: Request, error: Exception) -> Response:
    request.app.state.server.meter.count(OTHER, 405, 0.0)
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    message = f"{request.url.path[:80]!r} takes {headers.get('Allow', 'another method')}, not {request.method[:20]}"
    return Refusal(ApiError(405, message, code="wrong_method", headers=headers))
