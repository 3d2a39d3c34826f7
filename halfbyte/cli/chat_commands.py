"""The commands of a chat, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import nearest
from . import terminal
from .conversation import Conversation
from .parser import table
from .speed import speed_line


@dataclass(frozen=True)
class ChatCommand:
    """`run(conversation, rest of the line)` returns whether the chat goes on."""

    run: Callable[[Conversation, str], bool]
    about: str
    takes: str = ""


def obey(conversation: Conversation, line: str) -> bool:
    """Run a line that starts with a slash; returns whether the chat goes on."""
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        terminal.error(f"unknown command {name}{nearest(name, COMMANDS) or '; /help lists them'}")
        return True
    return command.run(conversation, rest.strip())


def _help(conversation: Conversation, rest: str) -> bool:
    rows = [(f"{name} {command.takes}".strip(), command.about) for name, command in COMMANDS.items()]
    keys = [("Ctrl-C", "stop the answer; twice on an empty line: leave"), ("Alt-Enter", "start a new line")]
    terminal.note(table(rows + keys))
    return True


def _reset(conversation: Conversation, rest: str) -> bool:
    conversation.reset()
    terminal.note("the conversation starts anew")
    return True


def _system(conversation: Conversation, rest: str) -> bool:
    if rest:
        conversation.system = rest
        conversation.reset()
        terminal.note("the conversation starts anew with this system prompt")
    else:
        terminal.note(f"system prompt: {conversation.system or 'none'}")
    return True


def _set(conversation: Conversation, rest: str) -> bool:
    if rest:
        name = conversation.set(rest)
        terminal.note(f"{name} = {conversation.settings[name]}")
    else:
        given = {name: value for name, value in conversation.settings.items() if value is not None}
        terminal.note(", ".join(f"{name} = {value}" for name, value in given.items()))
    return True


def _stats(conversation: Conversation, rest: str) -> bool:
    last = speed_line(conversation.timings) if conversation.timings else "[no whole answer yet]"
    terminal.note(f"{len(conversation.turns)} messages {last}")
    return True


def _exit(conversation: Conversation, rest: str) -> bool:
    return False


COMMANDS: dict[str, ChatCommand] = {
    "/help": ChatCommand(_help, "show this list"),
    "/reset": ChatCommand(_reset, "forget the conversation"),
    "/system": ChatCommand(_system, "set the system prompt and start anew; without TEXT show it", "TEXT"),
    "/set": ChatCommand(_set, "change how answers are drawn, as in /set temperature=0.7", "NAME=VALUE"),
    "/stats": ChatCommand(_stats, "show the figures of the last answer"),
    "/exit": ChatCommand(_exit, "leave (also Ctrl-D)"),
}
