"""`Bar`: progress on stderr, for work that turns out to take a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from . import terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOW_AFTER_S = 0.5
LINE_EVERY_S = 3.0
BYTES = ("download", "verify", "quantize", "convert", "reference")
LABELS = {
    "download": "fetching",
    "verify": "checking",
    "wait": "waiting for another process to fetch it",
    "compile": "compiling kernels (first time only)",
    "pack": "packing weights",
    "quantize": "quantizing",
    "convert": "converting",
    "sensitivity": "measuring what each tensor is worth",
    "try formats": "trying formats",
    "score": "scoring",
    "compare": "comparing tensors",
    "calibrate": "reading the text",
    "reference": "asking the reference",
}


class Bar:
    """Call it as `progress(what, done, total)`. Work that ends soon shows nothing and imports nothing.

    A terminal gets a bar, anything else a line every few seconds.
    """

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._last_line = 0.0
        self._live: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show `done` of `total`; 0 of 0 where nothing is known."""
        now = time.monotonic()
        started = self._started.setdefault(what, now)
        if what in self._tasks or now - started >= SHOW_AFTER_S:
            if terminal.is_terminal(sys.stderr):
                self._draw(what, done, total)
            elif now - self._last_line >= LINE_EVERY_S:
                self._last_line = now
                terminal.note(f"{LABELS.get(what, what)}: {amount(what, done, total)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _draw(self, what: str, done: int, total: int) -> None:
        if self._live is None:
            self._live = _rich_bar()
            self._live.start()
        if what not in self._tasks:
            self._tasks[what] = self._live.add_task(LABELS.get(what, what), total=total or None, amount="")
        self._live.update(self._tasks[what], completed=done, total=total or None, amount=amount(what, done, total))


def _rich_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def amount(what: str, done: int, total: int) -> str:
    """`12 of 93 MB`, `3 of 40`, or what of it is known."""
    if what in BYTES:
        return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else f"{done / 1e6:.0f} MB"
    return f"{done} of {total}" if total else ""
