"""Chat messages as templates may see them: plain data, checked and copied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RequestError, UnsupportedError

_ROLE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_DEPTH = 64


def check_messages(messages: object) -> list[dict[str, Any]]:
    """Messages as new dicts whose `content` is a string; a list of text parts is joined with newlines.

    Raises `RequestError` that names the message, and `UnsupportedError` for a part that is not text.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise RequestError(
            f"messages wants a list of {{'role': ..., 'content': ...}} mappings, not {type(messages).__name__}"
        )
    if not messages:
        raise RequestError("messages is empty: give at least one with role 'user'")
    return [_check_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def plain_data(value: object, where: str, depth: int = 0) -> Any:
    """A deep copy made of None, bool, int, float, str, list and dict; raises `RequestError` for anything else."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if depth == _MAX_DEPTH:
        raise RequestError(f"{where} is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise RequestError(f"{where} has the key {wrong[0]!r}: keys want to be strings")
        return {str(key): plain_data(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain_data(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise RequestError(f"{where} is a {type(value).__name__}: a chat template takes what JSON can hold")


def _check_message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise RequestError(f"{where} wants a mapping with 'role' and 'content', not {type(message).__name__}")
    role = message.get("role")
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise RequestError(f"{where}['role'] wants a name such as 'user' or 'assistant', not {role!r}")
    if "content" not in message and not message.get("tool_calls"):
        raise RequestError(f"{where} has no 'content'")
    checked: dict[str, Any] = plain_data(message, where)
    checked["content"] = _content(checked.get("content"), f"{where}['content']")
    return checked


def _content(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestError(f"{where} wants a string, a list of parts or None, not {type(content).__name__}")
    return "\n".join(_part(part, f"{where}[{i}]") for i, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise RequestError(f"{where} wants {{'type': 'text', 'text': ...}}, not {type(part).__name__}")
    kind = part.get("type", "text")
    if kind != "text":
        raise UnsupportedError(f"{where} is a part of type {kind!r}, and only text is understood", known=["text"])
    if not isinstance(part.get("text"), str):
        raise RequestError(f"{where} has no 'text'")
    return str(part["text"])
