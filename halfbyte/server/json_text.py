"""`encode`: JSON as it is sent."""

from __future__ import annotations

import json
from typing import Any


def encode(value: Any) -> bytes:
    """UTF-8 without spaces. What is no number of JSON is our own bug."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
