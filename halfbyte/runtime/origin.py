"""`Origin`: what computed KV belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from .adapters import AdapterUse


@dataclass(frozen=True)
class Origin:
    """`fingerprint` is the same where pages can be exchanged; `about` tells people what it is."""

    fingerprint: bytes = bytes(16)
    about: Mapping[str, str | int] = field(default_factory=dict)

    def of(self, use: AdapterUse) -> Origin:
        """That of what was computed with adapters; without any it is this one."""
        if not use.seed:
            return self
        mark = blake2b(self.fingerprint + use.seed, digest_size=16).digest()
        return Origin(mark, {**self.about, "adapters": use.text})
