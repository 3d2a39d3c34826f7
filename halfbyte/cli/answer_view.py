"""`show`: an answer on its way to the terminal, raw while it comes and set as Markdown part by part when whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from time import perf_counter

from . import terminal
from .markdown_blocks import Blocks


def show(pieces: Iterable[tuple[str, str]]) -> None:
    """Print an answer; into a pipe as it is and without its thinking."""
    view: PlainView | TerminalView = TerminalView() if terminal.is_terminal(sys.stdout) else PlainView()
    try:
        for kind, text in pieces:
            view.take(kind, text)
    finally:
        view.end()


class PlainView:
    """The answer's text alone."""

    def take(self, kind: str, text: str) -> None:
        """A piece."""
        if kind == "answer":
            terminal.token(text)

    def end(self) -> None:
        """The line's end."""
        terminal.line()


class TerminalView:
    """Thinking is dim and gives way to a line that says how long it took. Of the answer, paragraphs and code are drawn
    anew as soon as they are whole.
    """

    def __init__(self) -> None:
        self._draft = terminal.Draft()
        self._thinking_since: float | None = None
        self._blocks = Blocks()

    def take(self, kind: str, text: str) -> None:
        """A piece."""
        if kind == "thinking":
            if self._thinking_since is None:
                self._thinking_since = perf_counter()
            self._draft.add(text, dim=True)
            return
        self._fold()
        for part, whole in self._blocks.push(text):
            self._draft.add(part)
            if whole is not None:
                self._set(whole)

    def end(self) -> None:
        """All that is left."""
        self._fold()
        rest = self._blocks.finish()
        if rest.strip():
            self._set(rest)
        else:
            self._draft.replace(None)

    def _fold(self) -> None:
        if self._thinking_since is not None:
            seconds, self._thinking_since = perf_counter() - self._thinking_since, None
            self._draft.replace(f"[thought for {seconds:.1f} s; /thinking shows it]", dim=True)

    def _set(self, block: str) -> None:
        if block.strip():
            self._draft.replace(terminal.markdown(block))
            if block.endswith("\n\n"):
                terminal.line()
