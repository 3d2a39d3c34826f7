"""What the output of a model that may call tools is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Content:
    """Text that is no call."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A call of the tool `name` begins; its arguments follow."""

    name: str


@dataclass(frozen=True)
class CallArguments:
    """The next piece of the arguments, which together are the text of a JSON object."""

    text: str


@dataclass(frozen=True)
class CallEnd:
    """The call is whole, or the output was cut within it."""


Delta = Content | CallStart | CallArguments | CallEnd


class Call(NamedTuple):
    """A whole call: `arguments` is the text of a JSON object."""

    name: str
    arguments: str

    @property
    def deltas(self) -> list[Delta]:
        """The same in parts."""
        return [CallStart(self.name), CallArguments(self.arguments), CallEnd()]
