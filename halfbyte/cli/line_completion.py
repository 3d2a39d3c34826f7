"""`LineCompleter`: what may follow on a line of a chat: commands, settings, branches, file names."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from .chat_commands import COMMANDS
from .chat_room import Room


class LineCompleter(Completer):
    """Only lines that begin with a slash are completed."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """See `Completer`."""
        line = document.text_before_cursor
        name, space, rest = line.partition(" ")
        if not line.startswith("/"):
            return
        if not space:
            yield from _beginning(name, COMMANDS)
        elif name in COMMANDS:
            kind = COMMANDS[name].completes
            if kind == "files":
                yield from self._files.get_completions(Document(rest), complete_event)
            else:
                yield from _beginning(rest, self._known(kind))

    def _known(self, kind: str) -> Iterable[str]:
        if kind == "branches":
            return self._room.branches
        if kind == "settings":
            from .settings import rows

            return [f"{name}=" for name, _ in rows()]
        return ()


def _beginning(start: str, words: Iterable[str]) -> Iterable[Completion]:
    return [Completion(word, -len(start)) for word in words if word.startswith(start)]
