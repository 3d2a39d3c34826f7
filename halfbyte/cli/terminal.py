"""The only file that prints: answers to stdout, everything about them to stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

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


def markdown(text: str) -> Any:
    """Markdown that `Draft.replace` and `show` draw."""
    from rich.markdown import Markdown

    return Markdown(CONTROL.sub("", text), code_theme="ansi_dark")


def show(drawing: Any) -> None:
    """Something of rich's on stderr: a table, a coloured text."""
    if sys.stderr is not None:
        _console(sys.stderr).print(drawing)


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


class Draft:
    """Text on the terminal that something else will take the place of, unless it has grown beyond the screen."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, text: str, dim: bool = False) -> None:
        """Show more of it."""
        text = _tame(text, sys.stdout)
        self._text += text
        print(f"\x1b[2m{text}\x1b[22m" if dim else text, end="", flush=True)

    def replace(self, drawing: Any, dim: bool = False) -> None:
        """Draw in its place; None leaves it as it is."""
        text, self._text = self._text, ""
        if drawing is None:
            if text and not text.endswith("\n"):
                print(flush=True)
            return
        width, height = shutil.get_terminal_size()
        rows = sum(_rows(line, width) for line in text.removesuffix("\n").split("\n"))
        if rows >= height:
            if not text.endswith("\n"):
                print(flush=True)
            return
        # To the draft's first column, whatever row its end stands in, and clear from there.
        up = rows - (0 if text.endswith("\n") else 1)
        print("\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J", end="", flush=True)
        console = _console(sys.stdout)
        with console.capture() as drawn:
            console.print(drawing, style="dim" if dim else None)
        # Rich fills lines up with spaces, which whoever copies an answer would get as well.
        print("\n".join(line.rstrip(" ") for line in drawn.get().split("\n")), end="", flush=True)


def _rows(line: str, width: int) -> int:
    from rich.cells import cell_len

    return max(1, -(-cell_len(line.expandtabs(8)) // max(width, 1)))
