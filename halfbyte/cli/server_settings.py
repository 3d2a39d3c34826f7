"""Limits of a server as `NAME=VALUE`, for `--set`."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError, reject_unknown
from ..runtime.sizes import parse_bytes

NUMBERS: dict[str, tuple[type, str, str]] = {
    "max_choices": (int, "most answers of one request", "answers"),
    "max_connections": (int, "most open connections", "connections"),
    "max_queued_readings": (int, "most requests for vectors, or for probabilities of prompts, that wait", "requests"),
    "head_timeout": (float, "time for the head of a request to arrive", "seconds"),
    "body_timeout": (float, "time for its body to arrive", "seconds"),
    "timeout": (float, "time for its answer to end", "seconds"),
    "stall_timeout": (float, "how long a client may take nothing of its answer", "seconds"),
    "keep_alive": (float, "how long a stream may be silent before it says that it lives", "seconds"),
    "drain_timeout": (float, "time for requests under way when the server is told to stop", "seconds"),
}
OTHERS = {
    "max_body": "largest body of a request (size like 16MB; default 8MiB)",
    "hosts": "names besides this computer's own by which it answers without API keys, commas between; * is all "
    "(names; default none)",
    "page": "whether there is a page at / (on or off; default on)",
}


def server_setting(assignment: str) -> tuple[str, Any]:
    """The name and the value of `name=value`. Raises `ConfigError`; ranges are `ServerConfig`'s to judge."""
    name, equals, text = (part.strip() for part in assignment.partition("="))
    name = name.replace("-", "_")
    known = [*NUMBERS, *OTHERS]
    if not equals or not text:
        raise ConfigError(f"write NAME=VALUE, for example timeout=600; names: {', '.join(known)}")
    reject_unknown([name], known, "setting")
    if name == "max_body":
        return name, parse_bytes(text, name)
    if name == "hosts":
        return name, tuple(one.strip().lower() for one in text.split(",") if one.strip())
    if name == "page":
        if text not in ("on", "off"):
            raise ConfigError(f"page must be on or off, not {text!r}", key=name)
        return name, text == "on"
    kind = NUMBERS[name][0]
    try:
        return name, kind(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a {'whole ' if kind is int else ''}number", key=name) from None


def setting_rows() -> list[tuple[str, str]]:
    """Name and explanation of every setting, with unit and default."""
    from ..server.config import ServerConfig

    defaults = ServerConfig()
    numbers = [
        (name, f"{what} ({unit}; default {getattr(defaults, name):g})") for name, (_, what, unit) in NUMBERS.items()
    ]
    return numbers + list(OTHERS.items())
