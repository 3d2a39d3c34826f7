"""`read_json`: a JSON file of a checkpoint, which may be damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import FormatError

_MOST_BYTES = 1 << 28


def read_json(path: Path) -> dict[str, Any]:
    """The object that the file holds. Raises `FormatError` where there is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise FormatError(f"is larger than {_MOST_BYTES} bytes: no such file is", path=path)
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise FormatError("is missing: a checkpoint needs it", path=path) from None
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no JSON ({error}): fetch it again", path=path) from error
    if not isinstance(value, dict):
        raise FormatError(f"holds a {type(value).__name__}, not an object", path=path)
    return value
