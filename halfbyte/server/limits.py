"""Fields of a request that say how much of an answer is wanted, and how soon."""

from __future__ import annotations

from typing import Any

from .config import ServerConfig
from .errors import invalid
from .fields import Fields

MOST_TOKENS = 2**31 - 1


def limit_options(fields: Fields, config: ServerConfig, least: int = 1) -> dict[str, Any]:
    """Keywords of `generate`. `timeout` and `priority` are not OpenAI's; none gets more time than the server's, or
    is served before others that came first: it can only make way. `least` is the smallest `max_tokens`.

    Raises `ApiError`.
    """
    old, new = fields.whole("max_tokens", least, MOST_TOKENS), fields.whole("max_completion_tokens", 1, MOST_TOKENS)
    if old is not None and new is not None and old != new:
        raise invalid("max_tokens and max_completion_tokens differ: give one of the two", "max_completion_tokens")
    timeout = fields.number("timeout", 1e-3, 1e9)
    options: dict[str, Any] = {
        "max_tokens": old if new is None else new,
        "timeout": config.timeout if timeout is None else min(timeout, config.timeout),
        "priority": fields.whole("priority", 0, 1000),
    }
    return {name: value for name, value in options.items() if value is not None}


def number_of_choices(fields: Fields, config: ServerConfig) -> int:
    """`n`. Raises `ApiError`."""
    return fields.whole("n", 1, config.max_choices) or 1


def streaming(fields: Fields) -> tuple[bool, bool]:
    """Whether to stream, and whether the stream ends with usage. Raises `ApiError`."""
    stream = fields.flag("stream")
    wishes = fields.inner("stream_options")
    if wishes is None:
        return stream, False
    if not stream:
        raise invalid("stream_options are for stream=true alone", "stream_options")
    usage = wishes.flag("include_usage")
    wishes.ignore("include_obfuscation", "continuous_usage_stats")
    wishes.finish()
    return stream, usage
