"""`TypedValues`: typed reads of a file's keys that gather every problem before one error is raised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_SHOWN = 12


class TypedValues:
    """Reads `<prefix><key>`; what is missing or wrong is noted in `problems` and a harmless value returned instead."""

    def __init__(self, values: Mapping[str, object], prefix: str) -> None:
        self.values = values
        self.prefix = prefix
        self.problems: dict[str, str] = {}

    def problem(self, key: str, text: str) -> None:
        """Note what is wrong with `key`; the first word on a key stands."""
        self.problems.setdefault(key, text)

    def sound(self, *keys: str) -> bool:
        """Whether none of these keys was complained about, so that what is derived from them makes sense."""
        return self.problems.keys().isdisjoint(self.prefix + key for key in keys)

    def problem_listing(self) -> str:
        """What was noted, in one line."""
        lines = [f"{key} {text}" for key, text in self.problems.items()]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        return "; ".join(lines[:_SHOWN] + more)

    def has(self, key: str) -> bool:
        """Whether the file has `key`."""
        return self.prefix + key in self.values

    def integer(self, key: str, default: int | None = None, *, low: int = 1, high: int = 2**31 - 1) -> int:
        """A whole number from `low` to `high`; without a default the key must be there."""
        return int(self._number(key, default, low, high, whole=True))

    def number(self, key: str, default: float | None = None, *, low: float = 1e-30, high: float = 1e30) -> float:
        """A number from `low` to `high`, so a positive one; without a default the key must be there."""
        return float(self._number(key, default, low, high, whole=False))

    def text(self, key: str, default: str) -> str:
        """A string, or the default."""
        value = self.values.get(self.prefix + key, default)
        if isinstance(value, str):
            return value
        self.problem(self.prefix + key, f"wants text, not {_kind(value)}")
        return default

    def flag(self, key: str, default: bool) -> bool:
        """True or false, or the default."""
        value = self.values.get(self.prefix + key, default)
        if isinstance(value, bool):
            return value
        self.problem(self.prefix + key, f"wants true or false, not {_kind(value)}")
        return default

    def per_layer(
        self, key: str, n_layers: int, default: tuple[int, ...] | None = None, *, low: int = 1
    ) -> tuple[int, ...]:
        """One whole number a layer, given as an array of `n_layers` or as one number for all of them."""
        value = self.values.get(self.prefix + key)
        if not isinstance(value, np.ndarray):
            if value is None and default is not None:
                return default
            return (self.integer(key),) * n_layers
        full = self.prefix + key
        if value.dtype.kind not in "iu" or value.ndim != 1:
            self.problem(full, f"wants whole numbers, not {_kind(value)}")
        elif len(value) != n_layers:
            self.problem(full, f"has {len(value)} entries for {n_layers} layers")
        elif value.min() < low or value.max() > 2**31 - 1:
            self.problem(full, f"has entries from {value.min()} to {value.max()}, not {low} or more")
        else:
            return tuple(value.tolist())
        return (1,) * n_layers

    def _number(self, key: str, default: float | None, low: float, high: float, *, whole: bool) -> float:
        full = self.prefix + key
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
