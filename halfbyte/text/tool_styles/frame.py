"""`Frame`: how a style writes calls, as data for the parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .deltas import Call
from .json_calls import CALL_KEYS, read_json_calls

Tools = Mapping[str, Mapping[str, Any]]
"""Names of tools to the JSON schemas of their arguments."""


class Head(NamedTuple):
    """What stands between the mark of a call and its arguments; `wrapped`: these are within an object."""

    pattern: re.Pattern[str]
    wrapped: bool


_TEXT = r'"(?:[^"\\]|\\.)*"'
JSON_HEAD = Head(
    re.compile(
        rf'[\[,;\s]*\{{\s*(?:"(?:type|id)"\s*:\s*{_TEXT}\s*,\s*)*"name"\s*:\s*"(?P<name>[^"\\]+)"\s*,\s*'
        r'"(?:arguments|parameters|args)"\s*:\s*(?=\{)'
    ),
    wrapped=True,
)
_FIRST_KEY = re.compile(r'[\[,;\s]*\{\s*"([^"]*)"')
_START = re.compile(r'[\[,;\s]*(\{\s*("[^"]*)?)?')


def may_be_json(text: str) -> bool:
    """Whether a text can be the beginning of a call in JSON."""
    key = _FIRST_KEY.match(text)
    return key[1] in CALL_KEYS if key else _START.fullmatch(text) is not None


@dataclass(frozen=True)
class Frame:
    """`opens` are texts that a call may begin with, `closes` what ends it, empty where its own end does.

    `bare`: a call may also stand at the beginning of an answer without any of them. Where one of `heads` matches, the
    arguments come from there on as they are written. All else is given to `read` when it is whole. `may_be` says
    whether the beginning of a text can become a call. `skips` are texts without a meaning before calls.
    """

    opens: tuple[str, ...]
    closes: str = ""
    bare: bool = False
    heads: tuple[Head, ...] = (JSON_HEAD,)
    read: Callable[[str, Tools], list[Call]] = read_json_calls
    may_be: Callable[[str], bool] = may_be_json
    skips: tuple[str, ...] = ()
