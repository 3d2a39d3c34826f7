"""`Command`: what a command takes and says about itself, as data."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """A value given by its place, or `many` as a list that may be empty.

    `default` None makes it required, unless `optional` or `many` says otherwise.
    """

    name: str
    what: str
    default: str | None = None
    optional: bool = False
    many: bool = False

    @property
    def required(self) -> bool:
        """Whether leaving it out is an error."""
        return self.default is None and not self.optional and not self.many

    @property
    def help(self) -> str:
        """One line for the help text."""
        return self.what if self.default is None else f"{self.what} (default {self.default})"


@dataclass(frozen=True)
class Option:
    """A value given by name; `kind` bool makes it a switch.

    `unit` and `low`..`high` say what a value may be; a `default` of None is explained by `otherwise`. `many` allows
    the option several times and gives a list.
    """

    flag: str
    kind: type
    what: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    default: object = None
    otherwise: str = ""
    short: str = ""
    many: bool = False

    @property
    def dest(self) -> str:
        """Name of the value in the parsed namespace."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def range(self) -> str:
        """The values allowed, in words; empty for a text."""
        if self.low is None:
            return ""
        return f"{self.low:g} or more" if self.high is None else f"{self.low:g} to {self.high:g}"

    @property
    def help(self) -> str:
        """One line for the help text: what, unit, range, default."""
        if self.kind is bool:
            return f"{self.what} (default off)"
        default = self.otherwise or ("none" if self.default is None else f"{self.default:g}")
        facts = [", ".join(fact for fact in (self.unit, self.range) if fact), f"default {default}"]
        return f"{self.what} ({'; '.join(fact for fact in facts if fact)})"


@dataclass(frozen=True)
class Command:
    """One command. `example` is a line that works as it stands; `run` does the work and returns the exit code.

    `form` are options about what an answer must be, `gpu` those of who has one; help shows both apart. `settings` gives
    name and explanation of what `--set` takes, `loading` of what `--load` does.
    """

    name: str
    about: str
    example: str
    run: Callable[[Namespace], int]
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    form: tuple[Option, ...] = ()
    gpu: tuple[Option, ...] = ()
    settings: Callable[[], list[tuple[str, str]]] = list
    loading: Callable[[], list[tuple[str, str]]] = list

    @property
    def every_option(self) -> tuple[Option, ...]:
        """Those of all groups."""
        return self.options + self.form + self.gpu
