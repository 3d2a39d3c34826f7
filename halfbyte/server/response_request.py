"""`ResponseRequest`: what a response is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .call import Call
from .errors import invalid
from .fields import Fields
from .limits import MOST_TOKENS, limit_options, streaming
from .response_format import ANY_OBJECT, KINDS
from .response_input import Messages, read_input
from .sampling import sampling_options
from .served import Choice
from .speech import EFFORTS, Speech, read_speech
from .tool_choice import read_tools

WITHOUT_EFFECT = ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "context_management")
TOP_LOGPROBS = 20
LOGPROBS = "message.output_text.logprobs"
INCLUDE = (LOGPROBS, "reasoning.encrypted_content")


@dataclass(frozen=True)
class ResponseRequest:
    """A response that was asked for. `options` are keywords of `LLM.chat`, `echo` fields that the answer repeats."""

    choice: Choice
    messages: Messages
    options: dict[str, Any]
    speech: Speech
    stream: bool
    logprobs: bool
    echo: dict[str, Any]


def read_response(call: Call) -> ResponseRequest:
    """The request of a call. Raises `ApiError`."""
    fields = call.fields
    _refuse_memory(fields)
    choice = call.server.served.writer(fields.text("model"))
    echo = _echo(fields)
    messages = read_input(fields)
    effort = _effort(fields)
    speech = read_speech(choice.llm, read_tools(fields, flat=True), fields, effort)
    logprobs = _logprobs(fields)
    most = fields.whole("max_output_tokens", 1, MOST_TOKENS)
    options = {
        **limit_options(fields, call.server.config),
        **({} if most is None else {"max_tokens": most}),
        **sampling_options(fields, choice.llm),
        **logprobs,
        **_form(fields),
        **choice.adapters(fields),
        **speech.options,
    }
    stream, _ = streaming(fields)
    fields.ignore(*WITHOUT_EFFECT)
    fields.only("service_tier", "auto", "default")
    fields.only("truncation", "disabled")
    fields.finish()
    return ResponseRequest(choice, messages, options, speech, stream, bool(logprobs), echo)


def _refuse_memory(fields: Fields) -> None:
    """Nothing is kept between requests."""
    for name in ("previous_response_id", "conversation"):
        if fields.take(name) is not None:
            raise invalid(
                f"{name}: this server keeps no responses; send the whole conversation as input", name,
                "unsupported_value",
            )  # fmt: skip
    fields.only("store", False)
    fields.only("background", False)
    fields.only("prompt")
    fields.only("max_tool_calls")


def _echo(fields: Fields) -> dict[str, Any]:
    """Fields of the request as its answer has them; they are read again after this."""
    peek = fields.peek
    return {
        "instructions": peek("instructions"),
        "max_output_tokens": peek("max_output_tokens"),
        "metadata": fields.mapping("metadata") or {},
        "parallel_tool_calls": peek("parallel_tool_calls", True),
        "reasoning": peek("reasoning") or {"effort": None, "summary": None},
        "temperature": peek("temperature"),
        "text": peek("text") or {"format": {"type": "text"}},
        "tool_choice": peek("tool_choice", "auto"),
        "tools": peek("tools", []),
        "top_logprobs": peek("top_logprobs", 0),
        "top_p": peek("top_p"),
        "user": peek("user"),
    }


def _effort(fields: Fields) -> str | None:
    reasoning = fields.inner("reasoning")
    if reasoning is None:
        return None
    effort = reasoning.choice("effort", EFFORTS)
    reasoning.ignore("summary", "generate_summary")  # thinking itself is handed out
    reasoning.finish()
    return effort


def _logprobs(fields: Fields) -> dict[str, Any]:
    given = fields.take("include")
    include = [] if given is None else given
    if not isinstance(include, list) or not all(isinstance(name, str) and name in INCLUDE for name in include):
        raise fields.wrong("include", f"a list of {', '.join(INCLUDE)}", given)
    top = fields.whole("top_logprobs", 0, TOP_LOGPROBS)
    return {"logprobs": top or 0} if top or LOGPROBS in include else {}


def _form(fields: Fields) -> dict[str, Any]:
    options = {name: fields.take(name) for name in ("regex", "choices", "grammar")}
    text = fields.inner("text")
    form = None if text is None else text.inner("format")
    if form is not None:
        options["schema"] = _schema(form)
    if text is not None:
        text.ignore("verbosity")
        text.finish()
    options = {name: value for name, value in options.items() if value is not None}
    if len(options) > 1:
        raise invalid(f"an answer has one form: {' or '.join(options)}, not both", next(iter(options)))
    return options


def _schema(form: Fields) -> dict[str, Any] | None:
    kind = form.choice("type", KINDS)
    if kind is None:
        raise invalid(f"text.format.type must be one of {', '.join(KINDS)}", "text.format.type", "missing_field")
    if kind != "json_schema":
        form.finish()
        return ANY_OBJECT if kind == "json_object" else None
    name, schema = form.text("name"), form.mapping("schema")
    for missing in [key for key, value in (("name", name), ("schema", schema)) if value is None]:
        raise invalid(f"text.format.{missing} is missing", f"text.format.{missing}", "missing_field")
    form.ignore("description", "strict")  # an answer always follows the schema
    form.finish()
    return schema
