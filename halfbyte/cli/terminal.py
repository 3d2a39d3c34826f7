"""The only file that prints: answers to stdout, everything about them to stderr."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def prepare() -> None:
    """Let no character that a terminal or pipe cannot show end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def token(text: str) -> None:
    """A piece of an answer, at once."""
    print(_tame(text, sys.stdout), end="", flush=True)


def line(text: str = "") -> None:
    """A whole line of the result."""
    print(_tame(text, sys.stdout), flush=True)


def note(text: str) -> None:
    """A line about the work: speed, progress, warning. Where stderr takes nothing, the work goes on without."""
    if sys.stderr is None:  # closed at the start; `print` would take stdout instead
        return
    try:
        print(_tame(text, sys.stderr), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _abandon(sys.stderr)


def error(text: str) -> None:
    """The one line that an error gets."""
    note("error: " + " ".join(text.split("\n")))


def _tame(text: str, stream: TextIO) -> str:
    """Neither a model nor a file's names may steer a terminal: control characters are left out there."""
    return CONTROL.sub("", text) if is_terminal(stream) else text


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end of a stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def abandon_stdout() -> None:
    """Nobody reads stdout any more: keep the interpreter from failing on it when it ends."""
    _abandon(sys.stdout)


def _abandon(stream: TextIO) -> None:
    try:
        target = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, target)
    os.close(null)
