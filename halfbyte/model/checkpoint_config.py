"""`CheckpointConfig`: a checkpoint's `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import FormatError
from .typed_values import TypedValues


class CheckpointConfig(TypedValues):
    """Reads its keys; null counts as absent. `prefix` is where a section stands in the file."""

    def __init__(self, values: Mapping[str, object], path: Path, prefix: str = "") -> None:
        super().__init__({prefix + key: value for key, value in values.items() if value is not None}, prefix)
        self.path = path

    @property
    def given(self) -> dict[str, object]:
        """The keys of this section, as the file has them."""
        return {key.removeprefix(self.prefix): value for key, value in self.values.items()}

    def section(self, *keys: str) -> CheckpointConfig:
        """The first of several sections that is there, else an empty one; its problems are this one's too."""
        for key in keys:
            value = self.values.get(self.prefix + key)
            if isinstance(value, Mapping):
                part = CheckpointConfig(value, self.path, f"{self.prefix}{key}.")
                break
            if value is not None:
                self.problem(self.prefix + key, f"wants a section, not {value!r:.40}")
        else:
            part = CheckpointConfig({}, self.path, f"{self.prefix}{keys[0]}.")
        part.problems = self.problems
        return part

    def texts(self, key: str) -> list[str]:
        """A list of strings, empty where the key is absent."""
        value = self.values.get(self.prefix + key, [])
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return value
        self.problem(self.prefix + key, f"wants a list of strings, not {value!r:.40}")
        return []

    def integers(self, key: str) -> list[int]:
        """A list of whole numbers from 0 on, empty where the key is absent."""
        value = self.values.get(self.prefix + key, [])
        if isinstance(value, list) and all(type(n) is int and n >= 0 for n in value):
            return value
        self.problem(self.prefix + key, f"wants a list of whole numbers, not {value!r:.40}")
        return []

    def numbers(self, key: str) -> list[float]:
        """A list of positive numbers up to 1e30, empty where the key is absent."""
        value = self.values.get(self.prefix + key, [])
        if isinstance(value, list) and all(type(n) in (int, float) and 0 < n <= 1e30 for n in value):
            return [float(n) for n in value]
        self.problem(self.prefix + key, f"wants a list of positive numbers, not {value!r:.40}")
        return []

    def raise_problems(self) -> None:
        """Raise one `FormatError` naming every key that was noted."""
        if self.problems:
            raise FormatError(
                f"is incomplete or damaged: {self.problem_listing()}. Fetch the checkpoint again", path=self.path
            )
