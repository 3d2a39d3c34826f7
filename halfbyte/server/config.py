"""`ServerConfig`: how a server behaves, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from ..errors import ConfigError


@dataclass(frozen=True)
class ServerConfig:
    """How a server behaves. Sizes in bytes, times in seconds.

    `keys`: one of these must come with each request but `/health`; none asks for none. `origins`: web pages of these
    origins, as in "https://example.org", may call from a browser; "*" is all. `hosts`: names by which it may be called
    besides those of this computer, where no keys are asked for; "*" is all, which is right where others may reach it.

    One request asks for at most `max_choices` answers. There are at most `max_connections`. Of requests for vectors,
    and of those for probabilities of prompts, `max_queued_readings` may wait; of others the model's own `max_queued`.

    A body has at most `max_body` bytes and arrives within `body_timeout`, the head of a request within `head_timeout`.
    A request is answered within `timeout`, and ends where its client takes nothing for `stall_timeout`. A stream with
    nothing to say says so each `keep_alive`. `drain_timeout` is what requests under way get at the end.
    """

    keys: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    max_body: int = 8 * 2**20
    max_choices: int = 128
    max_connections: int = 512
    max_queued_readings: int = 64
    head_timeout: float = 20.0
    body_timeout: float = 60.0
    timeout: float = 3600.0
    stall_timeout: float = 60.0
    keep_alive: float = 15.0
    drain_timeout: float = 30.0
    page: bool = True

    def __post_init__(self) -> None:
        problems = dict(self._problems())
        if problems:
            raise ConfigError("; ".join(problems.values()), key=next(iter(problems)))

    def _problems(self) -> Iterator[tuple[str, str]]:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if field.type == "int" and not (isinstance(value, int) and value >= 1):
                yield field.name, f"{field.name} must be a whole number of at least 1, not {value!r}"
            if field.type == "float" and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
                yield field.name, f"{field.name} must be a number of seconds above 0, not {value!r}"
        for key in self.keys:
            if not key or not key.isascii() or not key.isprintable() or " " in key:
                yield "keys", "a key must be printable ASCII without spaces, and not empty"
        for origin in self.origins:
            if origin != "*" and ("://" not in origin or origin.endswith("/")):
                yield "origins", f"an origin is written as in https://example.org, without a path, not {origin!r}"
