"""`/v1/embeddings`."""

from __future__ import annotations

import base64
from typing import Any

from numpy.typing import NDArray
from starlette.responses import Response

from .call import Call
from .json_response import JsonResponse
from .prompts import read_prompts

MOST = 2048
"""Texts at once; OpenAI's limit."""


async def embeddings(call: Call) -> Response:
    """A vector of length 1 for each text."""
    fields = call.fields
    embedder, name = call.server.served.vectors(fields.text("model"))
    texts = read_prompts(fields, "input", MOST)
    form = fields.choice("encoding_format", ("float", "base64"), "float")
    truncate = fields.flag("truncate")
    fields.only("dimensions", embedder.spec.n_embd)
    fields.ignore("user")
    fields.finish()
    vectors, tokens = await call.server.vectors.run(lambda: embedder.embed_counted(texts, truncate=truncate))
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, form)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JsonResponse({"object": "list", "data": data, "model": name, "usage": usage})


def _written(vector: NDArray[Any], form: str | None) -> str | list[float]:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]
