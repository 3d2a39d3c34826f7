"""`page_routes`: the files of the web page, as they lie in the package."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGE = files(__package__) / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
# Nothing from elsewhere, no script or style but files, no forms, no frames: whatever a model writes stays text.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-cache",
}


def page_routes() -> list[Route]:
    """`/` and `/page/NAME` for each file, read once; no path of a request ever reaches the file system."""
    if not PAGE.is_dir():
        return []
    routes = [_route(f"/page/{one.name}", one) for one in PAGE.iterdir() if _kind(one.name)]
    return [_route("/", PAGE / "index.html"), *routes]


def _kind(name: str) -> str:
    return KINDS.get(f".{name.rpartition('.')[2]}", "")


def _route(path: str, file: Traversable) -> Route:
    body, headers = file.read_bytes(), {**HEADERS, "content-type": _kind(file.name)}

    async def send(request: Request) -> Response:
        return Response(body, headers=headers)

    return Route(path, send, methods=["GET"])
