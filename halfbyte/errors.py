"""Every error a caller can meet.

    HalfbyteError
    ├── FormatError        a file is not what it claims to be        (path, offset)
    ├── UnsupportedError   a sound file, a thing we do not do        (what, known)
    ├── ConfigError        an argument is misspelt or out of range   (key)
    ├── ResourceError      the machine has not enough of something   (needed, free)
    ├── CheckError         a model does not answer as it should here (item)
    └── RequestError       one request cannot be served, others can
        ├── ContextExceededError   prompt longer than the context, or than max_prompt_tokens
        ├── KvBudgetExceededError  more tokens than kv_memory holds
        ├── QueueFullError         as many requests wait as max_queued allows
        ├── DeadlineExceededError  not answered within timeout
        ├── IncompleteAnswerError  an answer that was to become an object ended before it was one (completion)
        └── CancelledError         the caller took the request back

A message says what is wrong, where, and what to do. An `AssertionError` is our own bug, never the caller's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike
from typing import Any


class HalfbyteError(Exception):
    """Base of all errors raised on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state: subclasses take keyword arguments that `args` does not hold."""
        return (_rebuild, (type(self), str(self), self.__dict__.copy()))


def _rebuild(kind: type[HalfbyteError], message: str, state: dict[str, Any]) -> HalfbyteError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class FormatError(HalfbyteError):
    """A file is truncated, corrupted or contradicts itself."""

    def __init__(self, message: str, *, path: str | PathLike[str] | None = None, offset: int | None = None) -> None:
        self.path = None if path is None else str(path)
        self.offset = offset
        where = "" if self.path is None else f"{self.path}: "
        at = "" if offset is None else f" (at byte {offset})"
        super().__init__(f"{where}{message}{at}")


class UnsupportedError(HalfbyteError):
    """The file is sound but asks for something this version does not do."""

    def __init__(self, message: str, *, known: Iterable[str] = ()) -> None:
        self.known = tuple(known)
        listing = f"; known: {', '.join(self.known)}" if self.known else ""
        super().__init__(f"{message}{listing}")


class ConfigError(HalfbyteError):
    """An argument, option or setting is unknown or out of range."""

    def __init__(self, message: str, *, key: str | None = None) -> None:
        self.key = key
        super().__init__(message)


class ResourceError(HalfbyteError):
    """Memory, disk, threads or network are not enough. Units: bytes where given."""

    def __init__(self, message: str, *, needed: int | None = None, free: int | None = None) -> None:
        self.needed = needed
        self.free = free
        super().__init__(message)


class CheckError(HalfbyteError):
    """File, tokenizer or kernels do not give what a check of the model expects; `item` is the first that failed."""

    def __init__(self, message: str, *, item: str) -> None:
        self.item = item
        super().__init__(message)


class RequestError(HalfbyteError):
    """One request cannot be served; the engine lives on."""


class ContextExceededError(RequestError):
    """The prompt does not fit the context, or is longer than prompts may be."""


class KvBudgetExceededError(RequestError):
    """The request needs more KV pages than there are. Units: bytes."""

    def __init__(self, message: str, *, needed: int, budget: int) -> None:
        self.needed = needed
        self.budget = budget
        super().__init__(message)


class QueueFullError(RequestError):
    """As many requests wait as may; later there may be room."""


class DeadlineExceededError(RequestError):
    """The request did not end in the time it was given."""


class IncompleteAnswerError(RequestError):
    """An answer ended before it was what its schema describes; `completion` has what there is."""

    def __init__(self, message: str, *, completion: Any) -> None:
        self.completion = completion
        super().__init__(message)


class CancelledError(RequestError):
    """The request was cancelled or its engine closed before it ended."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known name, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def reject_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise `ConfigError` for the first name in `given` that is not `known`, naming the nearest one."""
    names = list(known)
    for name in given:
        if name not in names:
            hint = nearest(name, names) or f"; known: {', '.join(names)}"
            raise ConfigError(f"unknown {what} {name!r}{hint}", key=name)
