"""`parse_object`: JSON as the standard has it, and no more of it than a request needs."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from .errors import ApiError, invalid

MAX_DEPTH = 64
MAX_VALUES = 1_000_000
MAX_DIGITS = 320
"""Of a number: the largest double has 309 before the point."""


def parse_object(body: bytes) -> dict[str, Any]:
    """The object that a body spells.

    Raises `ApiError` for what is no JSON object: wrong UTF-8, NaN, numbers too large for any reader, a name twice,
    half a surrogate pair, nesting deeper than 64.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_float,
            parse_int=_whole,
            object_pairs_hook=_without_twins,
        )
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise _malformed(f"it is nested more than {MAX_DEPTH} deep") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} (line {error.lineno} column {error.colno})") from None
    if not isinstance(value, dict):
        raise _malformed("it is no object: {...} is wanted")
    _check(value)
    return value


def _malformed(what: str) -> ApiError:
    return invalid(f"the body is not JSON as wanted: {what}", code="invalid_json")


def _refuse_constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is no number of JSON")


def _float(text: str) -> float:
    value = float(text) if len(text) <= MAX_DIGITS else math.inf
    if math.isinf(value):
        raise _malformed(f"the number {text[:20]}... is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _malformed(f"the number {text[:20]}... is too large")
    return int(text)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise _malformed(f"the name {ascii(twin)[:80]} stands twice in an object")
    return result


def _check(value: Any) -> None:
    """Without recursion: the parser may have gone deeper than Python code could follow."""
    level, seen = [value], 0
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        seen += len(level)
        if seen > MAX_VALUES:
            raise _malformed(f"it has more than {MAX_VALUES} values")
        for one in level:
            _check_texts(one)
        level = [child for one in level for child in _children(one)]
    raise _malformed(f"it is nested more than {MAX_DEPTH} deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _check_texts(value: Any) -> None:
    for text in value if isinstance(value, dict) else [value]:
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise _malformed(f"a text holds half a surrogate pair: {ascii(text)[:80]}") from None
