"""A visible table from name to module, resolved on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from .errors import UnsupportedError, nearest

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Names mapped to `module:attribute` strings; an entry is imported when it is first asked for.

    Raises `UnsupportedError` for an unknown name, with the nearest and all known ones.
    """

    def __init__(self, what: str, package: str, table: dict[str, str]) -> None:
        self.what = what
        self._package = package
        self._table = table
        self._resolved: dict[str, Any] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._resolved:
            if name not in self._table:
                raise UnsupportedError(f"unknown {self.what} {name!r}{nearest(name, self._table)}", known=self._table)
            module, _, attribute = self._table[name].partition(":")
            self._resolved[name] = getattr(importlib.import_module(module, self._package), attribute)
        found: T = self._resolved[name]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
