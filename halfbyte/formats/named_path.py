"""A path as a caller names it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from ..errors import ConfigError


def named_path(path: str | PathLike[str], key: str = "path") -> Path:
    """Raises `ConfigError` for what is no path; whether there is a file is for others to say."""
    try:
        return Path(path)
    except TypeError:
        raise ConfigError(f"{key} must be a path, not {path!r}", key=key) from None
