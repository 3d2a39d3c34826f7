"""Text from the command line and from a pipe."""

from __future__ import annotations

import os
import select
import stat
import sys

from . import terminal
from .parser import UsageError

PATIENCE_S = 2.0


def message(given: str | None, *, what: str) -> str:
    """The text given, with what is piped in behind it; `-` stands for the pipe alone. Raises `UsageError` for none."""
    piped = "" if given is not None and given != "-" and not _has_pipe() else _piped()
    parts = [clean(given)] if given and given != "-" else []
    text = "\n".join([*parts, piped] if piped else parts)
    if not text:
        raise UsageError(f"no {what}: give one in quotes, or pipe text in")
    return text


def _has_pipe() -> bool:
    """Whether stdin is a pipe or file; a terminal, /dev/null or nothing at all is not waited for."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _piped() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    _explain_waiting()
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    # The line end that `echo` adds is not part of the question.
    return text.removesuffix("\n").removesuffix("\r")


def _explain_waiting() -> None:
    """A pipe that nobody writes to or closes, as under ssh or in a job, must not look like a slow model."""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], PATIENCE_S)[0]:
        terminal.note("waiting for piped text; if none is meant to come, add < /dev/null")


def clean(text: str) -> str:
    """Bytes of the command line that were not UTF-8 come as lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
