"""What a conversion is asked to write, looked at before it reads a weight."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import ConfigError
from ...formats.new_file import check_place
from ...formats.split import NAME

_OURS = ("split.", "halfbyte.check.")
"""Beginnings of keys that follow from the tensors, so that any other value would make the file one that contradicts
itself."""


def check_target(path: Path, sources: Iterable[Path]) -> None:
    """Raise `ConfigError` where no file can be made, or where it would replace one of the folders it is made from."""
    check_place(path, "out")
    if not path.exists() or path.suffix == ".gguf":
        return
    for folder in sources:
        if any(own.exists() and own.samefile(path) for own in (folder.iterdir() if folder.is_dir() else ())):
            raise ConfigError(f"{path}: belongs to the source {folder}; give the new file another name", key="out")


def parts_at(path: Path) -> list[Path]:
    """Parts of a split file that is called so."""
    prefix = path.name.removesuffix(".gguf")
    named = ((other, NAME.fullmatch(other.name)) for other in path.absolute().parent.iterdir())
    return sorted(other for other, match in named if match and match["prefix"] == prefix)


def check_metadata(given: Iterable[str]) -> None:
    """Raise `ConfigError` for a key that nobody may choose."""
    for key in given:
        if key.startswith(_OURS):
            raise ConfigError(f"{key} follows from the tensors, so it cannot be given", key="metadata")
