"""`BrowserGuard`: web pages of others must not use a server behind their visitor's back."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .config import ServerConfig
from .errors import ApiError
from .json_response import Refusal

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class BrowserGuard:
    """Refuses what a browser sends for a page of another origin than those allowed.

    Where no keys are asked for the name in `Host` must be this computer's as well: a page may have its own name point
    here, and then counts as of the same origin.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self._app, self._config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] == "http":
            problem = self._problem(Headers(scope=scope))
            if problem is not None:
                await Refusal(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _problem(self, headers: Headers) -> ApiError | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        config = self._config
        if not config.keys and "*" not in config.hosts and _name(host) not in LOCAL | set(config.hosts):
            return ApiError(
                403, f"this server does not answer to the name {host[:80]!r}: start it with that name allowed, or with "
                "API keys", code="unknown_host"
            )  # fmt: skip
        if origin is None or "*" in config.origins or origin in config.origins:
            return None
        if origin != "null" and urlsplit(origin).netloc.lower() == host.lower():
            return None
        return ApiError(
            403, f"pages of {origin[:80]!r} may not call this server: start it with that origin allowed", code="cors"
        )


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
