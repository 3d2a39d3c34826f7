"""`/health`: whether to send requests here."""

from __future__ import annotations

from starlette.responses import Response

from .call import Call
from .json_response import JsonResponse


async def health(call: Call) -> Response:
    """200 and "ready", or 503 and "draining"; nothing that only who has a key should know."""
    draining = call.server.drain.begun
    body = {"status": "draining" if draining else "ready", "requests": call.server.drain.running}
    return JsonResponse(body, 503 if draining else 200, {"cache-control": "no-store"})
