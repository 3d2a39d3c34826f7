"""`Metadata`: typed reads of an architecture's keys that gather every problem before one error is raised."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

import numpy as np

from ..errors import FormatError

_SHOWN = 12


class Metadata:
    """Reads `<arch>.<key>`; what is missing or wrong is noted in `problems` and a harmless value returned instead."""

    def __init__(self, values: Mapping[str, object], arch: str, path: str | PathLike[str] | None = None) -> None:
        self.values = values
        self.arch = arch
        self.problems: dict[str, str] = {}
        self._path = path

    def problem(self, key: str, text: str) -> None:
        """Note what is wrong with `key`; the first word on a key stands."""
        self.problems.setdefault(key, text)

    def sound(self, *keys: str) -> bool:
        """Whether none of these keys was complained about, so that what is derived from them makes sense."""
        return self.problems.keys().isdisjoint(f"{self.arch}.{key}" for key in keys)

    def raise_problems(self) -> None:
        """Raise one `FormatError` naming every key that was noted."""
        if self.problems:
            lines = [f"{key} {text}" for key, text in self.problems.items()]
            more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
            listing = "; ".join(lines[:_SHOWN] + more)
            raise FormatError(
                f"the model's metadata is incomplete or damaged: {listing}. Fetch or convert the file again",
                path=self._path,
            )

    def has(self, key: str) -> bool:
        """Whether the file has `<arch>.<key>`."""
        return f"{self.arch}.{key}" in self.values

    def integer(self, key: str, default: int | None = None, *, low: int = 1, high: int = 2**31 - 1) -> int:
        """A whole number from `low` to `high`; without a default the key must be there."""
        return int(self._number(key, default, low, high, whole=True))

    def number(self, key: str, default: float | None = None, *, low: float = 1e-30, high: float = 1e30) -> float:
        """A number from `low` to `high`, so a positive one; without a default the key must be there."""
        return float(self._number(key, default, low, high, whole=False))

    def text(self, key: str, default: str) -> str:
        """A string, or the default."""
        value = self.values.get(f"{self.arch}.{key}", default)
        if isinstance(value, str):
            return value
        self.problem(f"{self.arch}.{key}", f"wants text, not {_kind(value)}")
        return default

    def flag(self, key: str, default: bool) -> bool:
        """True or false, or the default."""
        value = self.values.get(f"{self.arch}.{key}", default)
        if isinstance(value, bool):
            return value
        self.problem(f"{self.arch}.{key}", f"wants true or false, not {_kind(value)}")
        return default

    def per_layer(self, key: str, n_layers: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """One whole number a layer, given as an array of `n_layers` or as one number for all of them."""
        value = self.values.get(f"{self.arch}.{key}")
        if not isinstance(value, np.ndarray):
            if value is None and default is not None:
                return default
            return (self.integer(key),) * n_layers
        full = f"{self.arch}.{key}"
        if value.dtype.kind not in "iu" or value.ndim != 1:
            self.problem(full, f"wants whole numbers, not {_kind(value)}")
        elif len(value) != n_layers:
            self.problem(full, f"has {len(value)} entries for {n_layers} layers")
        elif value.min() < 1 or value.max() > 2**31 - 1:
            self.problem(full, f"has entries from {value.min()} to {value.max()}, not 1 or more")
        else:
            return tuple(value.tolist())
        return (1,) * n_layers

    def _number(self, key: str, default: float | None, low: float, high: float, *, whole: bool) -> float:
        full = f"{self.arch}.{key}"
        value = self.values.get(full, default)
        if value is None:
            self.problem(full, "is missing")
        elif isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            self.problem(full, f"wants a {'whole ' if whole else ''}number, not {_kind(value)}")
        elif not low <= value <= high:
            self.problem(full, f"is {value!r}, not a number from {low:g} to {high:g}")
        else:
            return value
        return 1


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with {value.size} entries"
    return f"{type(value).__name__} {value!r:.40}"
