"""`/tokenize` and `/detokenize`."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from .call import Call
from .errors import invalid
from .json_response import JsonResponse
from .logprobs import spell
from .tool_choice import read_tools


async def tokenize(call: Call) -> Response:
    """Token ids of a text, or of a conversation as the chat template makes it."""
    fields = call.fields
    llm = call.server.served.writer(fields.text("model")).llm
    prompt, content, messages = fields.text("prompt"), fields.text("content"), fields.take("messages")
    special = fields.flag("parse_special")
    bos = fields.take("add_special_tokens")
    pieces = fields.flag("return_token_strs")
    template, wish = fields.mapping("chat_template_kwargs") or {}, read_tools(fields)
    fields.finish()
    given = [one for one in (prompt, content, messages) if one is not None]
    if len(given) != 1:
        raise invalid("give one of prompt (a text) and messages", "prompt")
    if not (bos is None or isinstance(bos, bool)):
        raise fields.wrong("add_special_tokens", "true or false", bos)
    if not (messages is None or isinstance(messages, list)):
        raise fields.wrong("messages", "a list of messages", messages)
    if wish:
        template = {**template, "tools": list(wish.listed)}
    if messages is not None:
        ids = (await asyncio.to_thread(llm.render, messages, template)).tolist()
    else:
        ids = await asyncio.to_thread(llm.tokenize, given[0], special, bos)
    body: dict[str, Any] = {"tokens": ids, "count": len(ids), "max_model_len": llm.context}
    if pieces:
        body["token_strs"] = [spell(llm.tokenizer, token).decode(errors="replace") for token in ids]
    return JsonResponse(body)


async def detokenize(call: Call) -> Response:
    """The text of token ids."""
    fields = call.fields
    llm = call.server.served.writer(fields.text("model")).llm
    tokens = fields.take("tokens")
    special = fields.flag("special", default=True)
    fields.finish()
    if not isinstance(tokens, list) or any(isinstance(token, bool) or not isinstance(token, int) for token in tokens):
        raise fields.wrong("tokens", "a list of token ids", tokens)
    return JsonResponse({"prompt": await asyncio.to_thread(llm.detokenize, tokens, special)})
