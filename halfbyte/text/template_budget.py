"""`Budget`: how much one rendering of a chat template may do.

Everything that a template makes or repeats is paid for before it happens: characters, list items, turns of a loop.
So both time and memory are bounded without signals or a second process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from jinja2 import Undefined

from ..errors import FormatError

BASE_WORK = 1_000_000
WORK_PER_INPUT = 32
"""Templates that split off a reasoning part handle each character about a dozen times."""

MAX_SECONDS = 5.0
MAX_DEPTH = 64
_SCALARS = (int, float, type(None), Undefined)


class Budget:
    """Work left, in characters and items; seconds left; calls inside calls.

    `marks`: characters that stand for others while the template runs (see `literal_marks`).
    """

    def __init__(self, input_size: int, marks: Mapping[str, str]) -> None:
        self.marks = marks
        self.left = BASE_WORK + WORK_PER_INPUT * input_size
        self.depth = 0
        self._deadline = time.monotonic() + MAX_SECONDS

    def spend(self, amount: int) -> None:
        """Pay for `amount`; raises `FormatError` when the work or the time is used up."""
        self.left -= amount
        if self.left < 0:
            raise runaway("does far more work than its messages call for")
        if time.monotonic() > self._deadline:
            raise runaway(f"ran longer than {MAX_SECONDS:g} seconds")


BUDGET: ContextVar[Budget] = ContextVar("BUDGET")
"""The budget of the rendering that goes on in this thread."""


def runaway(what: str) -> FormatError:
    """The error for a template that would not end, or would fill the memory."""
    return FormatError(f"the chat template {what}: the file is damaged or hostile; give another template")


def spend(amount: int) -> None:
    """Pay from the current budget."""
    BUDGET.get().spend(amount)


def size(value: Any) -> int:
    """Characters of a string, items of a container, 1 for the rest."""
    return len(value) if isinstance(value, (str, list, tuple, dict, range)) else 1


def charge(value: Any) -> Any:
    """Pay for a value that was just made, and hand it on."""
    spend(size(value))
    return value


def measure(value: Any) -> int:
    """Pay for all that printing, comparing or hashing `value` would touch: shared parts count each time they occur.

    Raises `FormatError` for what is no plain data.
    """
    budget = BUDGET.get()
    total = 0
    stack = [value]
    while stack:
        item = stack.pop()
        total += 1
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif not isinstance(item, _SCALARS):
            raise FormatError(f"the chat template uses a {type(item).__name__} as if it were text")
        if total > budget.left:
            break
    budget.spend(total)
    return total
