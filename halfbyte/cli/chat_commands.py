"""The commands of a chat, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import RequestError, nearest
from . import terminal
from .answer_view import show
from .chat_files import load_conversation, read_file, save_conversation
from .chat_room import Room
from .parser import table
from .speed import speed_line
from .token_view import token_view


@dataclass(frozen=True)
class ChatCommand:
    """`run(room, rest of the line)`; `takes` names what may follow, `completes` says from what it is completed."""

    run: Callable[[Room, str], None]
    about: str
    takes: str = ""
    completes: str = ""


def obey(room: Room, line: str) -> None:
    """Run a line that starts with a slash. Raises `HalfbyteError` for one that cannot be done."""
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise RequestError(f"unknown command {name}{nearest(name, COMMANDS) or '; /help lists them'}")
    command.run(room, rest.strip())


def _help(room: Room, rest: str) -> None:
    rows = [(f"{name} {command.takes}".strip(), command.about) for name, command in COMMANDS.items()]
    keys = [
        ("Ctrl-C", "stop the answer and keep what there is; twice on an empty line: leave"),
        ("Alt-Enter", "start a new line"),
        ("Tab", "complete a command, a setting or a file name"),
    ]
    terminal.note(table(rows + keys))


def _system(room: Room, rest: str) -> None:
    if not rest:
        terminal.note(f"system prompt: {room.conversation.system or 'none'}")
        return
    room.conversation.system = rest
    room.conversation.reset()
    terminal.note("the conversation starts anew with this system prompt")


def _reset(room: Room, rest: str) -> None:
    room.conversation.reset()
    terminal.note("the conversation starts anew")


def _undo(room: Room, rest: str) -> None:
    question = room.conversation.undo()
    terminal.note(f"taken back: {_short(question)}")


def _retry(room: Room, rest: str) -> None:
    room.answer(room.conversation.retry())


def _edit(room: Room, rest: str) -> None:
    room.prefill = room.conversation.undo()
    terminal.note("the last question and its answer are taken back; edit it and press Enter")


def _branch(room: Room, rest: str) -> None:
    if not rest:
        terminal.note(", ".join(f"{name}{' (here)' * (name == room.branch)}" for name in room.branches))
        return
    new = room.switch(rest)
    what = "a new branch that begins as the conversation is now" if new else f"{len(room.conversation.turns)} messages"
    terminal.note(f"in branch {rest}: {what}")


def _set(room: Room, rest: str) -> None:
    settings = room.conversation.settings
    if rest:
        name = room.conversation.set(rest)
        terminal.note(f"{name} = {settings[name]}")
        return
    given = {name: value for name, value in settings.items() if value is not None}
    terminal.note(", ".join(f"{name} = {value}" for name, value in given.items()) or "all as the model says")


def _stats(room: Room, rest: str) -> None:
    talk = room.conversation
    last = speed_line(talk.timings) if talk.timings else "[no whole answer yet]"
    terminal.note(f"{len(talk.turns)} messages, {talk.context_used} of {talk.llm.context} tokens {last}")


def _probs(room: Room, rest: str) -> None:
    terminal.show(token_view(room.conversation, everything=rest == "all"))


def _thinking(room: Room, rest: str) -> None:
    thinking = room.conversation.last_answer().thinking
    if not thinking:
        raise RequestError("the last answer has no thinking")
    show([("answer", thinking)])


def _model(room: Room, rest: str) -> None:
    if rest:
        room.change_model(rest)
    info = room.conversation.llm.info()
    terminal.note(f"{room.model}: {', '.join(f'{key} {value}' for key, value in info.items())}")


def _exit(room: Room, rest: str) -> None:
    room.open = False


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


COMMANDS: dict[str, ChatCommand] = {
    "/help": ChatCommand(_help, "show this list"),
    "/system": ChatCommand(_system, "set the system prompt and start anew; without TEXT show it", "[TEXT]"),
    "/reset": ChatCommand(_reset, "forget the conversation"),
    "/undo": ChatCommand(_undo, "take the last question and its answer back"),
    "/retry": ChatCommand(_retry, "answer the last question once more"),
    "/edit": ChatCommand(_edit, "change the last question and ask again"),
    "/branch": ChatCommand(_branch, "go on in another branch, a new one begins here; alone list", "[NAME]", "branches"),
    "/save": ChatCommand(save_conversation, "write conversation and computed tokens to files", "FILE", "files"),
    "/load": ChatCommand(load_conversation, "go on with a saved conversation", "FILE", "files"),
    "/read": ChatCommand(read_file, "put a text file before the next question or this one", "FILE [TEXT]", "files"),
    "/set": ChatCommand(_set, "change how answers are drawn, as in /set temperature=0.7", "[NAME=VALUE]", "settings"),
    "/stats": ChatCommand(_stats, "show the figures of the last answer"),
    "/probs": ChatCommand(_probs, "show how likely its tokens were and what else might have come", "[all]"),
    "/thinking": ChatCommand(_thinking, "show what the model thought before the last answer"),
    "/model": ChatCommand(_model, "show the model, or go on with another", "[MODEL]"),
    "/exit": ChatCommand(_exit, "leave (also Ctrl-D)"),
}
