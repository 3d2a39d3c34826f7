"""`TokenizerFiles`: the files beside a checkpoint that say how text becomes ids."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import FormatError


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
        if not path.is_file():
            return None
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise FormatError("is no UTF-8 text; fetch it again", path=path, offset=error.start) from None
        except OSError as error:
            raise FormatError(f"cannot be read ({error.strerror})", path=path) from None

    def tree(self, name: str) -> dict[str, Any]:
        """The object in a JSON file."""
        if name not in self._trees:
            self._trees[name] = self._parse(name)
        return self._trees[name]

    def _parse(self, name: str) -> dict[str, Any]:
        text = self.text(name)
        if text is None:
            return {}
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"is no JSON ({error}); fetch it again", path=self.folder / name) from None
        if not isinstance(tree, dict):
            raise FormatError(f"wants a JSON object, not {type(tree).__name__}", path=self.folder / name)
        return tree
