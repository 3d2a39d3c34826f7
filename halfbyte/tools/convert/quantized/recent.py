"""`Recent`: the latest of things that are dear to make and large to keep."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Anything that knows its size in bytes."""

    @property
    def nbytes(self) -> int:
        """Bytes it holds."""


T = TypeVar("T", bound=Sized)
_LEAST = 2


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None


class Recent(Generic[T]):
    """Keeps at most `most` bytes, but two whatever their size: not all threads go on to the next at the same time.

    Threads that want the same wait for one of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """What `make` made when it was last asked for; an error of it is the caller's, and the next one tries again."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.value is None:
                entry.value = make()
            value = entry.value
        with self._lock:
            self._forget()
        return value

    def _forget(self) -> None:
        total = sum(entry.value.nbytes for entry in self._entries.values() if entry.value is not None)
        while total > self._most and len(self._entries) > _LEAST:
            _, entry = self._entries.popitem(last=False)
            total -= entry.value.nbytes if entry.value is not None else 0
