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
