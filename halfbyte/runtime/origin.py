"""`Origin`: what computed KV belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Origin:
    """`fingerprint` is the same where pages can be exchanged; `about` tells people what it is."""

    fingerprint: bytes = bytes(16)
    about: Mapping[str, str | int] = field(default_factory=dict)
