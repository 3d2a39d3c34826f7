"""`/metrics`: what the engine and the server did, for Prometheus."""

from __future__ import annotations

from starlette.responses import Response

from .call import Call
from .exposition import exposition


async def metrics(call: Call) -> Response:
    """Prometheus' text format."""
    text, kind = exposition(call.server)
    return Response(text, headers={"content-type": kind, "cache-control": "no-store"})
