"""`ToolStyle`: how a family of models is told of tools and calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .call_parser import CallParser
from .deltas import Call
from .frame import Frame, Tools
from .spelling import Spelling


@dataclass(frozen=True)
class ToolStyle:
    """`shown_by`: texts that a template of this style holds one of. `frame` is how its calls are read, `spelling` how
    they are written. `spelled` are texts that an answer must spell, should they be control tokens. `id_length`: what
    the templates want of the id of a call, None where it may be any.
    """

    name: str
    shown_by: tuple[str, ...]
    frame: Frame
    spelling: Spelling
    spelled: tuple[str, ...] = ()
    id_length: int | None = None
    instructions: Callable[[Sequence[Any]], str] | None = None
    """What the system message says where a template knows nothing of tools."""

    def parser(self, tools: Tools) -> CallParser:
        """A parser for one answer."""
        return CallParser(self.frame, tools)

    def write(self, calls: Sequence[Call]) -> str:
        """Calls as the model itself writes them."""
        return self.spelling.write(calls)
