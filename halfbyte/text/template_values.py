"""What templates do with values, paid for: the operations that `template_rewrite` puts in place of jinja's own."""

from __future__ import annotations

import re
from typing import Any

from .template_budget import charge, measure, runaway, size, spend

_MAX_BITS = 4096
_WIDE_FORMAT = re.compile(r"%[^%a-zA-Z]*?(\*|\d{4})")


def tick(result: bool, cost: int) -> bool:
    """Pay for one turn of a loop or one call of a macro."""
    spend(cost)
    return result


def emit(value: Any) -> str:
    """The text of an output expression."""
    if not isinstance(value, str):
        measure(value)
    return str(charge(str(value)))


def concat(values: list[Any]) -> str:
    """The operator `~`."""
    return "".join(map(emit, values))


def bounded(value: Any) -> Any:
    """A value that is about to be compared, or a container that was just written."""
    if isinstance(value, (list, tuple, dict)):
        measure(value)
    return value


def binary(operator: str, left: Any, right: Any) -> None:
    """Pay for an arithmetic operation before it happens."""
    if operator == "*":
        _times(left, right)
    elif operator == "**":
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > _MAX_BITS:
            raise runaway("computes a power of thousands of digits")
    elif operator == "%" and isinstance(left, str):
        check_format(left, right)
    else:
        # Tuples can be hashed, which touches all that is in them; lists cannot, and appending to one is common.
        for value in (left, right):
            if isinstance(value, tuple):
                measure(value)
        spend(size(left) + size(right))


def check_format(form: str, values: Any) -> None:
    """Refuse widths and precisions of thousands in a `%` format."""
    if _WIDE_FORMAT.search(form):
        raise runaway("formats with a width of thousands")
    fields = form.count("%")
    spend(len(form) + 1000 * fields)
    # A name may be formatted many times, a place only once.
    spend((fields if isinstance(values, dict) else 1) * measure(values))


def _times(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _MAX_BITS:
            raise runaway("computes numbers of thousands of digits")
        return
    for value, times in ((left, right), (right, left)):
        if isinstance(value, (str, list, tuple)) and isinstance(times, int):
            each = size(value) if isinstance(value, str) else measure(value)
            spend(each * max(0, times))


def prepay(owner: Any, method: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pay for a method of `owner`, if it is a string or a container; returns the arguments it may be called with."""
    if isinstance(owner, str):
        spend(len(owner))
        if method == "join" and args:
            items = charge(list(args[0]))
            spend(len(owner) * len(items) + measure(items))
            return (items, *args[1:])
        if method == "replace" and len(args) >= 2:
            spend(owner.count(args[0]) * len(args[1]))
    elif isinstance(owner, dict):
        spend(len(owner))
    elif isinstance(owner, (list, tuple)):
        # Looking for an item compares it with all others.
        measure([owner, *args])
    return args
