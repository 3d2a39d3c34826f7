"""`LoadConfig`: how a model is loaded, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ..errors import ConfigError, UnsupportedError

KV_TYPES = ("f16",)
"""Types of the KV store's numbers."""
_COUNTS = ("context", "max_num_batched_tokens", "max_num_seqs", "threads")


@dataclass(frozen=True)
class LoadConfig:
    """How a model is loaded.

    `context` is the most tokens of one sequence, prompt and answer together, at most what the model was made for; all
    sequences share KV pages for that many. A step computes at most `max_num_batched_tokens` tokens (a longer prompt is
    cut into chunks) of at most `max_num_seqs` sequences. `prefix_cache` keeps the beginnings of prompts so that the
    next request with the same beginning skips it. `threads` None takes what suits the machine, `isa` None the best
    instruction set it has.

    Raises `ConfigError` that names every value out of range, `UnsupportedError` for an unknown KV type.
    """

    context: int = 4096
    threads: int | None = None
    kv: str = "f16"
    max_num_batched_tokens: int = 512
    max_num_seqs: int = 8
    prefix_cache: bool = True
    backend: str = "cpu"
    isa: str | None = None

    def __post_init__(self) -> None:
        problems = dict(self._problems())
        if problems:
            raise ConfigError("; ".join(problems.values()), key=next(iter(problems)))
        if self.kv not in KV_TYPES:
            raise UnsupportedError(f"kv={self.kv!r} is no type of KV store", known=KV_TYPES)
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None:  # a NumPy integer becomes Python's
                object.__setattr__(self, name, int(value))

    def _problems(self) -> Iterator[tuple[str, str]]:
        for name in _COUNTS:
            value: Any = getattr(self, name)
            if name == "threads" and value is None:
                continue
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (whole and 1 <= value < 2**31):
                yield name, f"{name} must be an integer of at least 1, not {value!r}"
        for name in ("kv", "backend", "isa"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "isa" and value is None):
                yield name, f"{name} must be a string, not {value!r}"
        if not isinstance(self.prefix_cache, bool):
            yield "prefix_cache", f"prefix_cache must be True or False, not {self.prefix_cache!r}"
