"""Amounts of memory and disk as people write them."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Integral

from ..errors import ConfigError

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_HOW = "write 300MB, 1.5GiB or a number of bytes"
_LIMIT = 1 << 63


def parse_bytes(value: object, key: str) -> int:
    """Bytes of `300MB`, `1.5 GiB` or `123456`. Raises `ConfigError` naming the key."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        n_bytes = int(value)
    elif isinstance(value, str) and (found := re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", value.strip().lower())):
        if found[2] not in _UNITS:
            raise ConfigError(f"{key}: {value!r} has an unknown unit; {_HOW}", key=key)
        # Compared before it becomes an integer, which for a thousand digits would be slow.
        n_bytes = int(min(Decimal(found[1]) * _UNITS[found[2]], Decimal(_LIMIT)))
    else:
        raise ConfigError(f"{key}: {value!r} is no size; {_HOW}", key=key)
    if not 0 <= n_bytes < _LIMIT:
        raise ConfigError(f"{key}: {value!r} is out of range; {_HOW}", key=key)
    return n_bytes


def parse_memory(value: object, key: str, free: int | None) -> int:
    """Like `parse_bytes`, where a float above 0 and up to 1 stands for that share of the `free` bytes.

    Raises `ConfigError` too for a share where `free` is unknown.
    """
    if not isinstance(value, float):
        return parse_bytes(value, key)
    if not 0 < value <= 1:
        raise ConfigError(f"{key}: a share of the free memory is above 0 and at most 1, not {value!r}", key=key)
    if free is None:
        raise ConfigError(f"{key}: this system does not tell how much memory is free; {_HOW}", key=key)
    return int(free * value)
