"""`halfbyte chat`: talk with a model."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, HalfbyteError
from . import terminal
from .chat_commands import obey
from .chat_room import Room
from .command import Command, Option
from .constraints import CONSTRAINTS, constraint
from .conversation import Conversation
from .loading import rows
from .model import load
from .options import GPU, LOADING, MAX_TOKENS, MODEL, SAMPLING, TEMPERATURE, sampling, settings
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
NO_THINKING = Option("--no-thinking", bool, "Let a model that thinks before it answers answer at once")
ANSWER = replace(MAX_TOKENS, default=1024)
CHAT_TEMPERATURE = replace(TEMPERATURE, default=None, otherwise=f"as the model file says, else {LIVELY:g}")
OPTIONS = tuple(CHAT_TEMPERATURE if option is TEMPERATURE else option for option in SAMPLING)


def run(values: Namespace) -> int:
    """One answer for a pipe or `--prompt`, otherwise a conversation."""
    talk = values.prompt is None and terminal.is_terminal(sys.stdin)
    question = "" if talk else message(values.prompt, what="question")
    given = {"max_tokens": values.max_tokens, **sampling(values), **constraint(values)}
    llm = load(values)
    conversation = Conversation(llm, given, system=values.system or "")
    room = Room(conversation, values.model, lambda name: load(Namespace(**{**vars(values), "model": name})))
    try:
        if given["temperature"] is None and "general.sampling.temp" not in llm.metadata:
            given["temperature"] = LIVELY
        if values.no_thinking:
            conversation.template = _without_thinking(conversation)
        if talk:
            _converse(room)
        else:
            room.ask(question)
    finally:
        conversation.llm.close()
    return 0


def _without_thinking(conversation: Conversation) -> Mapping[str, Any]:
    """What tells the model's template so."""
    reasoning = conversation.reasoning
    if reasoning is None or not reasoning.off:
        raise ConfigError("the model's chat template has no switch for thinking; leave out --no-thinking")
    return reasoning.off


def _converse(room: Room) -> None:
    from .line_input import typed_lines

    terminal.note(f"{Path(room.model).name}: /help shows the commands, Ctrl-C stops an answer, Ctrl-D leaves")
    for line in typed_lines(room):
        try:
            if line.lstrip().startswith("/"):
                obey(room, line)
            else:
                room.ask(line)
        except KeyboardInterrupt:
            terminal.note("[stopped]")
        except HalfbyteError as error:
            terminal.error(str(error))


COMMAND = Command(
    "chat",
    about="Talk with a model. Without a terminal, the whole of the piped text is one question: "
    "echo 'Why is the sky blue?' | halfbyte chat",
    example="halfbyte chat",
    run=run,
    arguments=(replace(MODEL, default="smollm2-135m"),),
    options=(QUESTION, SYSTEM, NO_THINKING, ANSWER, *OPTIONS, *LOADING),
    form=CONSTRAINTS,
    gpu=GPU,
    settings=settings,
    loading=rows,
)
