"""Sizes that an option of the command line takes."""

from __future__ import annotations

from ..errors import ConfigError
from ..runtime.sizes import parse_bytes
from .parser import UsageError


def read_size(text: str, flag: str) -> int:
    """Bytes of `300MB`, `1.5 GiB` or `123456`; raises `UsageError` naming the option."""
    try:
        return parse_bytes(text, flag)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def size_text(n_bytes: int) -> str:
    """A number of bytes for people, to three figures: 93.2 MB, 1.25 GB."""
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(n_bytes) >= power:
            return f"{n_bytes / power:#.3g} {unit}".replace(". ", " ")
    return f"{n_bytes} bytes"
