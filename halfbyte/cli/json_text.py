"""Results as JSON that every reader takes."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any) -> str:
    """One line. NaN and infinity, for which JSON has no word, become null."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
