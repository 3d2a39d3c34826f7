"""`ChatRequest`: what a chat completion is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .call import Call
from .errors import invalid
from .fields import Fields
from .limits import limit_options, number_of_choices, streaming
from .response_format import format_options
from .sampling import sampling_options
from .served import Choice
from .speech import EFFORTS, Speech, read_speech
from .tool_choice import read_tools

WITHOUT_EFFECT = ("user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "verbosity")
TOP_LOGPROBS = 20


@dataclass(frozen=True)
class ChatRequest:
    """A chat completion that was asked for. `options` are keywords of `LLM.chat`."""

    choice: Choice
    messages: list[Any]
    options: dict[str, Any]
    n: int
    stream: bool
    usage: bool
    logprobs: bool
    speech: Speech


def read_chat(call: Call) -> ChatRequest:
    """The request of a call. Raises `ApiError`; the contents of messages are the chat template's to judge."""
    fields = call.fields
    choice = call.server.served.writer(fields.text("model"))
    options = {
        **limit_options(fields, call.server.config),
        **sampling_options(fields, choice.llm),
        **_logprobs(fields),
        **format_options(fields),
        **choice.adapters(fields),
    }
    speech = read_speech(choice.llm, read_tools(fields), fields, fields.choice("reasoning_effort", EFFORTS))
    options |= speech.options
    stream, usage = streaming(fields)
    request = ChatRequest(
        choice=choice,
        messages=_messages(fields),
        options=options,
        n=number_of_choices(fields, call.server.config),
        stream=stream,
        usage=usage,
        logprobs="logprobs" in options,
        speech=speech,
    )
    fields.ignore(*WITHOUT_EFFECT)
    fields.only("store", False)
    fields.only("modalities", ["text"])
    fields.only("service_tier", "auto", "default")
    fields.finish()
    return request


def _messages(fields: Fields) -> list[Any]:
    messages = fields.take("messages")
    if not isinstance(messages, list):
        raise fields.wrong("messages", "a list of messages", messages)
    return messages


def _logprobs(fields: Fields) -> dict[str, Any]:
    wanted, top = fields.flag("logprobs"), fields.whole("top_logprobs", 0, TOP_LOGPROBS)
    if top is not None and not wanted:
        raise invalid("top_logprobs wants logprobs=true beside it", "top_logprobs")
    return {"logprobs": top or 0} if wanted else {}
