"""Lines that a person types in a chat: editing, history and completion where the terminal allows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import terminal
from .chat_room import Room

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

PROMPT = "> "
AGAIN = "Ctrl-C again or Ctrl-D leaves, /help shows the commands"


def typed_lines(room: Room) -> Iterator[str]:
    """Non-empty lines until Ctrl-D, or Ctrl-C twice on an empty line."""
    session = _session(room) if terminal.is_terminal(sys.stderr) else None
    interrupted = False
    while room.open:
        try:
            prefill, room.prefill = room.prefill, ""
            line = session.prompt(PROMPT, default=prefill) if session else input()
        except EOFError:
            return
        except KeyboardInterrupt:
            if interrupted:
                return
            interrupted = not (session and session.default_buffer.text)
            terminal.note(AGAIN)
            continue
        interrupted = False
        if line.strip():
            yield line


def _session(room: Room) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent
    from prompt_toolkit.output import create_output

    from .line_completion import LineCompleter

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    kept = _history_file()
    history: History = FileHistory(str(kept)) if kept else InMemoryHistory()
    return PromptSession(
        history=history,
        completer=LineCompleter(room),
        complete_while_typing=False,
        key_bindings=keys,
        bottom_toolbar=lambda: room.status,
        output=create_output(sys.stderr),  # stdout is for answers alone
    )


def _history_file() -> Path | None:
    """The history in the cache folder, readable by its owner only; None where it cannot be kept."""
    from ..hub import cache_folder

    path = cache_folder() / "chat_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return None
    return path
