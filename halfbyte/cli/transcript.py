"""`Transcript`: a conversation as a file that a person can read and change."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError, FormatError, ResourceError
from .turn import Turn

VERSION = 1
ROLES = ("user", "assistant")


@dataclass
class Transcript:
    """`model` is its name for people, `mark` tells whether another one is the same."""

    model: str
    mark: str
    system: str
    settings: dict[str, Any]
    turns: list[Turn]


def write_transcript(path: Path, transcript: Transcript) -> None:
    """All or nothing. Raises `ConfigError` for a path that cannot be written, `ResourceError` for a full disk."""
    data = {
        "halfbyte_chat": VERSION,
        "model": transcript.model,
        "model_mark": transcript.mark,
        "system": transcript.system,
        "settings": {name: value for name, value in transcript.settings.items() if value is not None},
        "messages": [_message(turn) for turn in transcript.turns],
    }
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        handle, part = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as error:
        Path(part).unlink(missing_ok=True)
        raise ResourceError(f"{path} cannot be written: {error.strerror}") from error


def read_transcript(path: Path) -> Transcript:
    """Raises `ConfigError` where there is no such file, `FormatError` for what is no conversation."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is no JSON: {error}", path=path) from error
    if not isinstance(data, dict) or data.get("halfbyte_chat") != VERSION:
        raise FormatError(f"is no conversation that /save wrote (halfbyte_chat is not {VERSION})", path=path)
    settings = data.get("settings", {})
    if not isinstance(settings, dict):
        raise FormatError("settings must be an object", path=path)
    messages = data.get("messages", [])
    if not isinstance(messages, list):
        raise FormatError("messages must be a list", path=path)
    return Transcript(
        model=str(data.get("model", "")),
        mark=str(data.get("model_mark", "")),
        system=_text(data, "system", path, ""),
        settings=_checked(settings, path),
        turns=[_turn(item, n, path) for n, item in enumerate(messages)],
    )


def _message(turn: Turn) -> dict[str, str]:
    return turn.message | ({"thinking": turn.thinking} if turn.thinking else {})


def _turn(item: Any, place: int, path: Path) -> Turn:
    if not isinstance(item, dict) or item.get("role") not in ROLES:
        raise FormatError(f"messages[{place}] wants a role, {' or '.join(ROLES)}", path=path)
    return Turn(item["role"], _text(item, "content", path), _text(item, "thinking", path, ""))


def _text(data: dict[str, Any], key: str, path: Path, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise FormatError(f"{key} must be a text, not {repr(value)[:60]}", path=path)
    return value


def _checked(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    from ..runtime.sampling.params import SamplingParams

    known = {name: value for name, value in settings.items() if name != "max_tokens"}
    try:
        SamplingParams().override(known)
    except ConfigError as error:
        raise FormatError(f"settings: {error}", path=path) from error
    most = settings.get("max_tokens", 1)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise FormatError("settings: max_tokens must be 1 or more", path=path)
    return settings
