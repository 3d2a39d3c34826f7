"""`halfbyte chat`: talk with a model."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ..errors import HalfbyteError
from . import terminal
from .chat_commands import COMMANDS, obey
from .command import Command, Option
from .conversation import Conversation
from .loading import rows
from .model import load
from .options import GPU, LOADING, MAX_TOKENS, MODEL, SAMPLING, TEMPERATURE, sampling, settings
from .speed import speed_line
from .typed_text import message

LIVELY = 0.8
"""Temperature where neither the person nor the model file names one: llama.cpp's."""

QUESTION = Option(
    "--prompt",
    str,
    "Ask this, print the answer and leave; piped text is put behind it",
    "text",
    short="-p",
)
SYSTEM = Option("--system", str, "What the model is told before the conversation", "text")
ANSWER = replace(MAX_TOKENS, default=1024)
CHAT_TEMPERATURE = replace(TEMPERATURE, default=None, otherwise=f"as the model file says, else {LIVELY:g}")
OPTIONS = tuple(CHAT_TEMPERATURE if option is TEMPERATURE else option for option in SAMPLING)


def run(values: Namespace) -> int:
    """One answer for a pipe or `--prompt`, otherwise a conversation."""
    talk = values.prompt is None and terminal.is_terminal(sys.stdin)
    question = "" if talk else message(values.prompt, what="question")
    given = {"max_tokens": values.max_tokens, **sampling(values)}
    with load(values) as llm:
        if given["temperature"] is None and "general.sampling.temp" not in llm.metadata:
            given["temperature"] = LIVELY
        conversation = Conversation(llm, given, system=values.system or "")
        if talk:
            _converse(conversation, values.model)
        else:
            _answer(conversation, question)
    return 0


def _converse(conversation: Conversation, name: str) -> None:
    from .line_input import typed_lines

    terminal.note(f"{Path(name).name}: /help shows the commands, Ctrl-C stops an answer, Ctrl-D leaves")
    for line in typed_lines(list(COMMANDS)):
        try:
            if not line.lstrip().startswith("/"):
                _answer(conversation, line)
            elif not obey(conversation, line):
                return
        except KeyboardInterrupt:
            terminal.line()
            terminal.note("[stopped]")
        except HalfbyteError as error:
            terminal.error(str(error))


def _answer(conversation: Conversation, question: str) -> None:
    with closing(conversation.ask(question)) as pieces:
        for piece in pieces:
            terminal.token(piece)
    terminal.line()
    if conversation.timings is not None:
        terminal.note(speed_line(conversation.timings))
    if conversation.finish_reason == "length":
        terminal.note("[cut: --max-tokens is reached or the context is full]")


COMMAND = Command(
    "chat",
    about="Talk with a model. Without a terminal, the whole of the piped text is one question: "
    "echo 'Why is the sky blue?' | halfbyte chat",
    example="halfbyte chat",
    run=run,
    arguments=(replace(MODEL, default="smollm2-135m"),),
    options=(QUESTION, SYSTEM, ANSWER, *OPTIONS, *LOADING),
    gpu=GPU,
    settings=settings,
    loading=rows,
)
