"""`tell`: a conversation with calls of tools, in OpenAI's form, as a template takes it."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Sequence
from typing import Any

from ...errors import RequestError
from .deltas import Call
from .style import ToolStyle

_LETTERS = string.ascii_letters + string.digits
Messages = list[dict[str, Any]]


def involves_tools(messages: Messages) -> bool:
    """Whether there are calls or results in a conversation."""
    return any(message.get("tool_calls") or message["role"] == "tool" for message in messages)


def tell(messages: Messages, style: ToolStyle) -> Messages:
    """For templates that know tools: arguments as objects, results with the names of their tools, ids as they must be.

    Raises `RequestError` for arguments that are no JSON object.
    """
    names: dict[Any, str] = {}
    return [_told(message, f"messages[{at}]", style, names) for at, message in enumerate(messages)]


def one_call_each(messages: Messages) -> Messages:
    """For templates that take one call in a message: each has a message of its own, and its result behind it."""
    told: Messages = []
    results = {message.get("tool_call_id"): message for message in messages if message["role"] == "tool"}
    placed: set[int] = set()
    for message in messages:
        calls = message.get("tool_calls") or []
        if len(calls) < 2:
            told += [] if id(message) in placed else [message]
            continue
        for at, call in enumerate(calls):
            told.append(message | {"tool_calls": [call], "content": message["content"] if at == 0 else ""})
            result = results.get(call.get("id"))
            if result is not None and id(result) not in placed:
                placed.add(id(result))
                told.append(result)
    return told


def tell_in_words(messages: Messages, tools: Sequence[Any], style: ToolStyle, system: bool) -> Messages:
    """For templates that know none: tools, calls and results are spelt out in the contents of ordinary messages.

    `system`: the template takes a message with this role.
    """
    told: Messages = []
    for at, message in enumerate(tell(messages, style)):
        calls = _calls(message, f"messages[{at}]")
        if message["role"] == "tool":
            _add(told, "user", f"<tool_response>\n{message['content']}\n</tool_response>")
        elif calls:
            content = "\n".join(filter(None, (message["content"], style.spelling.write(calls))))
            told.append({"role": message["role"], "content": content})
        elif message["role"] == "user" and told and told[-1]["content"].endswith("</tool_response>"):
            _add(told, "user", message["content"])
        else:
            told.append(dict(message))
    return _instruct(told, tools, style, system) if tools else told


def with_text_arguments(messages: Messages) -> Messages:
    """Arguments as JSON text again, for the templates that put them into a text as they are."""

    def text(call: dict[str, Any]) -> dict[str, Any]:
        function = call.get("function", call)
        changed = function | {"arguments": json.dumps(function.get("arguments", {}), ensure_ascii=False)}
        return call | {"function": changed} if "function" in call else changed

    return [
        message | {"tool_calls": [text(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in messages
    ]


def _told(message: dict[str, Any], where: str, style: ToolStyle, names: dict[Any, str]) -> dict[str, Any]:
    told = dict(message)
    if told["role"] == "tool" and "tool_call_id" in told:
        _check_id(told["tool_call_id"], f"{where}['tool_call_id']")
        told.setdefault("name", names.get(told["tool_call_id"], "tool"))
        told["tool_call_id"] = _id(told["tool_call_id"], style)
    if told.get("tool_calls"):
        calls = _list(told["tool_calls"], where)
        for at, (call, one) in enumerate(zip(calls, _calls(told, where), strict=True)):
            _check_id(call.get("id"), f"{where}['tool_calls'][{at}]['id']")
            names[call.get("id")] = one.name
        told["tool_calls"] = [_as_objects(call, f"{where}['tool_calls'][{at}]", style) for at, call in enumerate(calls)]
    return told


def _check_id(given: Any, where: str) -> None:
    if given is not None and not isinstance(given, str):
        raise RequestError(f"{where} wants a string, not {type(given).__name__}")


def _list(calls: Any, where: str) -> list[dict[str, Any]]:
    if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
        return calls
    raise RequestError(f"{where}['tool_calls'] wants a list of {{'id', 'type', 'function'}} mappings")


def _calls(message: dict[str, Any], where: str) -> list[Call]:
    calls = []
    for at, call in enumerate(_list(message.get("tool_calls") or [], where)):
        function = call.get("function", call)
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(f"{where}['tool_calls'][{at}] has no name of a function")
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
        calls.append(Call(function["name"], text))
    return calls


def _as_objects(call: dict[str, Any], where: str, style: ToolStyle) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _parsed(arguments, where)
    changed = function | {"arguments": {} if arguments is None else arguments}
    told: dict[str, Any] = {"type": call.get("type", "function"), "function": changed}
    return {"id": _id(call["id"], style), **told} if "id" in call else told


def _parsed(text: str, where: str) -> Any:
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    raise RequestError(f"{where} has arguments that are no JSON object: {text[:80]!r}")


def _id(given: Any, style: ToolStyle) -> Any:
    """An id that the templates of the style take, the same for the same one."""
    length = style.id_length
    if length is None or given is None or (len(given) == length and given.isalnum() and given.isascii()):
        return given
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:length])


def _add(told: Messages, role: str, content: str) -> None:
    """Another message, or more of the last one: roles of many templates must alternate."""
    if told and told[-1]["role"] == role:
        told[-1]["content"] = f"{told[-1]['content']}\n{content}"
    else:
        told.append({"role": role, "content": content})


def _instruct(told: Messages, tools: Sequence[Any], style: ToolStyle, system: bool) -> Messages:
    assert style.instructions is not None
    words = style.instructions(tools)
    first = told[0]
    if first["role"] in ("system", "developer"):
        return [first | {"content": f"{first['content']}\n\n{words}".lstrip()}, *told[1:]]
    if system:
        return [{"role": "system", "content": words}, *told]
    return [first | {"content": f"{words}\n\n{first['content']}"}, *told[1:]]
