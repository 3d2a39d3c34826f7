"""`halfbyte generate`: continue a text."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import terminal
from .command import Argument, Command, Option
from .constraints import CONSTRAINTS, constraint
from .json_text import json_text
from .loading import rows
from .model import load
from .options import GPU, JSON, LOADING, MAX_TOKENS, MODEL, SAMPLING, SPECIAL, sampling, settings
from .speed import speed_line
from .typed_text import message

if TYPE_CHECKING:
    from ..runtime.llm import LLM

STOP = Option("--stop", str, "End before this text; may be given several times", "text", many=True)


def run(values: Namespace) -> int:
    """Stream the continuation to stdout, the speed to stderr."""
    text = message(values.prompt, what="prompt")
    given = {"max_tokens": values.max_tokens, "stop": values.stop or [], **sampling(values), **constraint(values)}
    with load(values) as llm:
        prompt = llm.tokenize(text, special=True) if values.special else text
        if values.json:
            _print_json(llm, prompt, given)
        else:
            _stream(llm, prompt, given)
    return 0


def _stream(llm: LLM, prompt: str | list[int], given: dict[str, Any]) -> None:
    timings = None
    for event in llm.stream(prompt, **given):
        terminal.token(event.text)
        timings = event.timings
    terminal.line()
    if timings is not None:
        terminal.note(speed_line(timings))


def _print_json(llm: LLM, prompt: str | list[int], given: dict[str, Any]) -> None:
    answer = llm.generate(prompt, **given)
    timings = asdict(answer.timings) | {
        "prefill_tok_s": answer.timings.prefill_tok_s,
        "decode_tok_s": answer.timings.decode_tok_s,
    }
    result = {
        "text": answer.text,
        "ids": list(answer.ids),
        "finish_reason": answer.finish_reason,
        "prompt_ids": list(answer.prompt_ids),
        "seed": answer.seed,
        "timings": timings,
    }
    if answer.logprobs:
        result["logprobs"] = [token._asdict() for token in answer.logprobs]
    terminal.line(json_text(result))


COMMAND = Command(
    "generate",
    about="Continue a text, without a chat template. Piped text is put behind PROMPT.",
    example='halfbyte generate smollm2-135m "The capital of France is" --max-tokens 20',
    run=run,
    arguments=(MODEL, Argument("PROMPT", "the text to continue; - or nothing reads it from a pipe", optional=True)),
    options=(MAX_TOKENS, *SAMPLING, STOP, *LOADING, SPECIAL, JSON),
    form=CONSTRAINTS,
    gpu=GPU,
    settings=settings,
    loading=rows,
)
