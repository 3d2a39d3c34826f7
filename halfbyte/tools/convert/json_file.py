"""`read_json`: a JSON file of a checkpoint, which may be damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import FormatError

_MOST_BYTES = 1 << 28


def read_text(path: Path) -> str:
    """All of a text file. Raises `FormatError` where it cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise FormatError(f"is larger than {_MOST_BYTES} bytes: no such file is", path=path)
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise FormatError("is missing: a checkpoint needs it", path=path) from None
    except UnicodeDecodeError as error:
        raise FormatError("is no UTF-8 text; fetch it again", path=path, offset=error.start) from None
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", path=path) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object that the file holds. Raises `FormatError` where there is none."""
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no JSON ({error}); fetch it again", path=path) from None
    if not isinstance(value, dict):
        raise FormatError(f"wants a JSON object, not {type(value).__name__}", path=path)
    return value
