"""`TokenizerFiles`: the files beside a checkpoint that say how text becomes ids."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .json_file import read_json, read_text


class TokenizerFiles:
    """Reads files of one folder, each once; an absent one is an empty object. Raises `FormatError` with the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trees: dict[str, dict[str, Any]] = {}

    def first(self, names: Iterable[str]) -> Path | None:
        """The first of these files that there is."""
        return next((self.folder / name for name in names if (self.folder / name).is_file()), None)

    def text(self, name: str) -> str | None:
        """A file's text, None where it is absent."""
        path = self.folder / name
        return read_text(path) if path.is_file() else None

    def tree(self, name: str) -> dict[str, Any]:
        """The object in a JSON file."""
        if name not in self._trees:
            path = self.folder / name
            self._trees[name] = read_json(path) if path.is_file() else {}
        return self._trees[name]
