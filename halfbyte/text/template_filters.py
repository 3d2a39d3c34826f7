"""Filters, tests and functions that chat templates may use, each paid for.

What is not in these tables is refused: jinja has filters that pad, repeat or look up attributes by name.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import wraps
from itertools import islice
from string import Formatter
from typing import Any

from jinja2 import filters, tests
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup, escape

from ..errors import RequestError
from .template_budget import BUDGET, charge, measure, runaway, size, spend
from .template_values import bounded, check_format, concat, emit, prepay, tick

_CHEAP = (
    *("abs", "capitalize", "count", "d", "default", "first", "float", "int", "items"),
    *("last", "length", "list", "lower", "map", "reject", "rejectattr", "reverse", "safe", "select", "selectattr"),
    *("title", "trim", "upper"),
)
_TOUCH_ALL = ("dictsort", "groupby", "max", "min", "sort", "unique")
_MAX_RANGE = 100_000
_MAX_INDENT = 64
_MAX_MESSAGE = 500
_BUILT_IN: dict[str, Any] = dict(filters.FILTERS)
_TESTS: dict[str, Any] = dict(tests.TESTS)
_WIDE_DATE = re.compile(r"%[^a-zA-Z%]*\d")


def _paid(function: Callable[..., Any], touches_all: bool) -> Callable[..., Any]:
    """`function` with its arguments and its result paid for; the first argument may be jinja's context."""
    skipped = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def paid(*args: Any, **options: Any) -> Any:
        given = list(args)
        if touches_all and len(given) > skipped and isinstance(given[skipped], Iterator):
            given[skipped] = charge(list(given[skipped]))
        for value in (*given[skipped:], *options.values()):
            if touches_all:
                bounded(value)
            spend(size(value))
        return charge(function(*given, **options))

    return paid


def _join(values: Any, separator: str = "", attribute: str | None = None) -> str:
    items = charge(list(values))
    if attribute is not None:
        items = [item.get(attribute, "") if isinstance(item, dict) else "" for item in items]
    spend(len(separator) * len(items))
    return emit(separator).join(map(emit, items))


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text, old, new = emit(value), emit(old), emit(new)
    prepay(text, "replace", (old, new, count))
    return text.replace(old, new, count)


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if isinstance(width, int) and width > _MAX_INDENT:
        raise runaway(f"indents by {width}")
    margin = width if isinstance(width, str) else " " * width
    text = emit(text)
    spend(len(margin) * (text.count("\n") + 1))
    return str(filters.do_indent(text, margin, first, blank))


def _format(form: str, *values: Any, **named: Any) -> str:
    check_format(emit(form), named or values)
    return str(charge(form % (named or values)))


def format_braces(form: str, *values: Any, **named: Any) -> str:
    """`str.format` for plain fields of moderate width."""
    fields = [(field, spec) for _, field, spec, _ in Formatter().parse(form) if field is not None]
    for field, spec in fields:
        if not re.fullmatch(r"\w*", field) or not re.fullmatch(r"\D*\d{0,3}\D*", spec or "") or "{" in (spec or ""):
            raise runaway(f"formats with {field}:{spec}")
    spend(len(form) + len(fields) * (1000 + measure([values, named])))
    return str(charge(form.format(*values, **named)))


def _escape(text: Any) -> Markup:
    """HTML escapes, also of characters that are marked for what they stand for."""
    marks = BUDGET.get().marks
    meant = {ord(mark): char for mark, char in marks.items() if html.escape(char) != char}
    escaped = escape(emit(text).translate(meant))
    spend(len(escaped))
    return escaped


def _ascii(text: str) -> str:
    """JSON escapes for what lies beyond ASCII; marks stay, for they stand for other characters."""
    marks = BUDGET.get().marks
    spend(6 * len(text))
    return re.sub(r"[^\x00-\x7f]", lambda m: m[0] if m[0] in marks else json.dumps(m[0])[1:-1], text)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As Hugging Face has it: no HTML escapes, characters beyond ASCII as they are."""
    if isinstance(value, Iterator):
        value = charge(list(value))
    touched = measure(value)
    if indent is not None:
        if indent > _MAX_INDENT:
            raise runaway(f"indents by {indent}")
        spend(touched * max(indent, 0) * 4)
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)
    return str(charge(_ascii(text) if ensure_ascii else text))


def _round(value: Any, precision: int = 0, method: str = "common") -> Any:
    if abs(precision) > _MAX_INDENT:
        raise runaway("rounds to thousands of digits")
    return filters.do_round(value, precision, method)  # type: ignore[arg-type]


def _sum(values: Any, attribute: str | None = None, start: float = 0) -> Any:
    numbers = charge(list(values))
    if attribute is not None:
        numbers = [number[attribute] for number in numbers]
    if not all(isinstance(number, (int, float)) for number in (*numbers, start)):
        raise RequestError("the chat template sums values that are not numbers")
    return sum(numbers, start)


def _sized(value: Any) -> Any:
    return bounded(value) if isinstance(value, tuple) else charge(value)


FILTERS: dict[str, Callable[..., Any]] = {
    **{name: _paid(_BUILT_IN[name], False) for name in _CHEAP},
    **{name: _paid(_BUILT_IN[name], True) for name in _TOUCH_ALL},
    "e": _escape,
    "escape": _escape,
    "forceescape": _escape,
    "format": _format,
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "round": _round,
    "string": emit,
    "sum": _sum,
    "tojson": _tojson,
    "_tick": tick,
    "_emit": emit,
    "_concat": concat,
    "_bounded": bounded,
    "_sized": _sized,
}

TESTS: dict[str, Callable[..., Any]] = {name: _paid(test, True) for name, test in _TESTS.items()}


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    # len() of a range beyond the machine's integers fails, so its end is tried for instead.
    if any(True for _ in islice(numbers[_MAX_RANGE:], 1)):
        raise runaway(f"asks for a range of more than {_MAX_RANGE} numbers")
    return numbers


def _raise_exception(message: Any) -> None:
    raise RequestError(f"the chat template refuses these messages: {emit(message)[:_MAX_MESSAGE]}")


def _strftime_now(form: str) -> str:
    if len(form) > _MAX_INDENT or _WIDE_DATE.search(form):
        raise runaway("asks for a date of unusual width")
    return datetime.now().strftime(form)


def _dict(*pairs: Any, **named: Any) -> dict[Any, Any]:
    return dict(*pairs, **named)


FUNCTIONS: dict[str, Any] = {
    "range": _range,
    "dict": _dict,
    "namespace": Namespace,
    "cycler": Cycler,
    "joiner": Joiner,
    "raise_exception": _raise_exception,
    "strftime_now": _strftime_now,
}
