"""`CompletionRequest`: what a completion is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .call import Call
from .errors import invalid
from .limits import limit_options, number_of_choices, streaming
from .prompts import Text, read_prompts
from .response_format import format_options
from .sampling import sampling_options
from .served import Choice

MAX_TOKENS = 16
"""OpenAI's default, for completions alone."""
LOGPROBS = 20


@dataclass(frozen=True)
class CompletionRequest:
    """A completion that was asked for: `n` answers to each prompt, with `options` of `LLM.generate`.

    With `silent` nothing is to be written: the prompt alone is wanted back, with its probabilities.
    """

    choice: Choice
    prompts: list[Text]
    options: dict[str, Any]
    n: int
    stream: bool
    usage: bool
    logprobs: int | None
    echo: bool
    silent: bool


def read_completion(call: Call) -> CompletionRequest:
    """The request of a call. Raises `ApiError`."""
    fields, config = call.fields, call.server.config
    choice = call.server.served.writer(fields.text("model"))
    logprobs = fields.whole("logprobs", 0, LOGPROBS)
    options = {
        "max_tokens": MAX_TOKENS,
        **limit_options(fields, config, least=0),
        **sampling_options(fields, choice.llm),
        **({} if logprobs is None else {"logprobs": logprobs}),
        **format_options(fields),
        **choice.adapters(fields),
    }
    stream, usage = streaming(fields)
    request = CompletionRequest(
        choice=choice,
        prompts=read_prompts(fields, "prompt", config.max_choices),
        options=options,
        n=number_of_choices(fields, config),
        stream=stream,
        usage=usage,
        logprobs=logprobs,
        echo=fields.flag("echo"),
        silent=options["max_tokens"] == 0,
    )
    fields.ignore("user")
    fields.only("best_of", 1, request.n)
    fields.only("suffix", "")
    fields.finish()
    if len(request.prompts) * request.n > config.max_choices:
        raise invalid(
            f"{len(request.prompts)} prompts with n={request.n} are {len(request.prompts) * request.n} answers, and at "
            f"most {config.max_choices} are given at once", "n"
        )  # fmt: skip
    if request.silent and not request.echo:
        raise invalid("max_tokens=0 wants echo=true beside it, or there is nothing to answer", "max_tokens")
    return request
