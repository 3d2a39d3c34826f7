"""What a chat writes and reads: conversations with what was computed of them, and texts to ask about."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError, HalfbyteError
from . import terminal
from .chat_room import Room
from .text_file import read_text
from .transcript import Transcript, read_transcript, write_transcript

SESSION = ".kv"
"""Behind the name of a conversation's file: the file of what was computed."""


def save_conversation(room: Room, rest: str) -> None:
    """`/save FILE`: the messages as JSON, and beside them keys and values, which only speed up a `/load`."""
    talk, path = room.conversation, _path(rest, "/save chat.json")
    write_transcript(path, Transcript(room.model, _mark(room), talk.system, dict(talk.settings), talk.turns))
    terminal.note(f"saved {len(talk.turns)} messages to {path}")
    if talk.turns:
        try:
            tokens = talk.llm.save_session(_session(path), prompt=talk.llm.render(talk.messages(), talk.template))
            terminal.note(f"and {tokens} computed tokens to {_session(path)}")
        except HalfbyteError as error:
            terminal.note(f"without what was computed: {error}")


def load_conversation(room: Room, rest: str) -> None:
    """`/load FILE`: what was saved, with the model as it is now."""
    talk, path = room.conversation, _path(rest, "/load chat.json")
    saved = read_transcript(path)
    talk.reset()
    talk.system, talk.turns = saved.system, saved.turns
    talk.settings = talk.settings | saved.settings
    terminal.note(f"{len(saved.turns)} messages from {path}")
    if saved.mark != _mark(room):
        terminal.note(f"they were with {saved.model}; {room.model} reads them anew")
    elif _session(path).is_file():
        try:
            terminal.note(f"{talk.llm.load_session(_session(path))} computed tokens are back")
        except HalfbyteError as error:
            terminal.note(f"they are read anew: {error}")


def read_file(room: Room, rest: str) -> None:
    """`/read FILE [TEXT]`: the file goes before a question."""
    whole = Path(rest).expanduser().is_file()  # a name may have spaces
    name, question = (rest, "") if whole else (rest.partition(" ")[0], rest.partition(" ")[2])
    path = _path(name, "/read notes.txt What is missing?")
    text = read_text(str(path), "/read")
    room.conversation.held += f"{path.name}:\n```\n{text.rstrip()}\n```\n\n"
    if question.strip():
        room.ask(question.strip())
    else:
        terminal.note(f"{path}: {len(text)} characters go before your next question")


def _path(name: str, example: str) -> Path:
    if not name:
        raise ConfigError(f"name a file, for example: {example}")
    return Path(name).expanduser()


def _session(path: Path) -> Path:
    return path.with_name(path.name + SESSION)


def _mark(room: Room) -> str:
    """What tells one model from another, whatever their files are called."""
    facts = room.conversation.llm.metadata
    return " ".join(str(facts.get(f"general.{key}", "")) for key in ("name", "architecture", "file_type"))
