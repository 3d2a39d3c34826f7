"""Sizes as people write them."""

from __future__ import annotations

import re

from .parser import UsageError

UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}


def read_size(text: str, flag: str) -> int:
    """Bytes of `300MB`, `1.5 GiB` or `123456`; raises `UsageError` naming the option."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in UNITS:
        raise UsageError(f"{flag}: {text!r} is no size; write 300MB, 1.5GiB or a number of bytes")
    return int(float(found[1]) * UNITS[found[2]])
