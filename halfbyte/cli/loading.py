"""Keywords of `halfbyte.load` as `NAME=VALUE`, for `--load`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ConfigError, reject_unknown


def loading(assignments: Iterable[str]) -> dict[str, Any]:
    """The keywords of several `name=value`. Raises `ConfigError` for a wrong one; values are `load`'s to judge."""
    return dict(map(_keyword, assignments))


def rows() -> list[tuple[str, str]]:
    """Name and explanation of every keyword, with unit, range and default."""
    return [(name, about) for name, (_, about) in KEYWORDS.items()]


def _keyword(assignment: str) -> tuple[str, Any]:
    name, equals, text = (part.strip() for part in assignment.partition("="))
    name = name.replace("-", "_")
    if not equals or not text:
        raise ConfigError(f"write NAME=VALUE, for example kv_memory=1GB; names: {', '.join(KEYWORDS)}")
    reject_unknown([name], KEYWORDS, "keyword of --load")
    return name, KEYWORDS[name][0](text)


def _memory(text: str) -> float | str:
    """A share has a point and no unit."""
    try:
        return text if text.isdigit() else float(text)
    except ValueError:
        return text


def _adapters(text: str) -> list[tuple[str, float]]:
    """`PATH` or `PATH=SCALE`, commas between."""
    found = []
    for one in text.split(","):
        path, _, scale = one.strip().partition("=")
        try:
            found.append((path, float(scale or 1)))
        except ValueError:
            raise ConfigError(f"{scale!r} is no number: write PATH or PATH=SCALE", key="adapters") from None
    return found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a whole number", key="max_draft") from None


KEYWORDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "kv": (str, "types in which keys and values are kept: f16, q8_0, q4_0, f32, or both as in q8_0/q4_0 (word; default "
                "f16)"),
    "kv_memory": (_memory, "memory for all keys and values kept (size like 2GB, or share of what is free; default one "
                           "context)"),
    "disk_cache": (str, "folder that keeps beginnings of prompts for the next time (path; default none)"),
    "disk_cache_size": (str, "how large that folder may become (size; default 4GB)"),
    "swap_space": (str, "temporary file for answers that must make room (size; default 0)"),
    "speculation": (str, "where guessed tokens come from: ngram or off (word; default ngram)"),
    "draft_model": (str, "smaller model with the same vocabulary that guesses tokens (path or name; default none)"),
    "adapters": (_adapters, "LoRA adapters with how much of each to add (PATH or PATH=SCALE, commas between; default "
                            "none)"),
    "max_draft": (_whole, "most guessed tokens a step (tokens, 1 to 15; default 15)"),
}  # fmt: skip
