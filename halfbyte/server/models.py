"""`/v1/models`: what there is to ask."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from .call import Call, Server
from .errors import ApiError
from .fields import shown
from .json_response import JsonResponse


async def models(call: Call) -> Response:
    """All models, adapters as models of their own."""
    return JsonResponse({"object": "list", "data": listed(call.server)})


async def model(call: Call) -> Response:
    """One model by its name."""
    name = call.request.path_params["name"]
    for one in listed(call.server):
        if one["id"] == name:
            return JsonResponse(one)
    known = ", ".join(call.server.served.names())
    raise ApiError(404, f"there is no model {shown(name)}; there are: {known}", param="model", code="model_not_found")


def listed(server: Server) -> list[dict[str, Any]]:
    """Each model with what OpenAI says of one, and what it can do."""
    served = server.served
    found = []
    for name in served.names():
        one: dict[str, Any] = {"id": name, "object": "model", "created": served.created, "owned_by": "halfbyte"}
        if served.embedder is not None and name == served.embedder_name:
            one |= {"max_model_len": served.embedder.context, "capabilities": ["embeddings"]}
        elif served.llm is not None:
            one |= {"max_model_len": served.llm.context, "capabilities": ["chat", "completion"]}
            if name != served.name:
                one["parent"] = served.name
        found.append(one)
    return found
