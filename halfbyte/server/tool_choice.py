"""`ToolWish`: the tools of a request, and which of them an answer may or must call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import invalid
from .fields import Fields, shown

MOST_TOOLS = 128
FORMS = (
    'a tool is {"type": "function", "function": {"name": ..., "parameters": {...}}}',
    'a tool is {"type": "function", "name": ..., "parameters": {...}}',
)
"""For chats, and for responses."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class ToolWish:
    """`listed` are the definitions as templates take them, `schemas` those of the arguments by name.

    `strict`: names of tools whose arguments must follow their schema. `required`: at least one is called; without
    `parallel` at most one.
    """

    listed: tuple[dict[str, Any], ...] = ()
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()
    required: bool = False
    parallel: bool = True

    def __bool__(self) -> bool:
        return bool(self.listed)

    @property
    def bound(self) -> bool:
        """Whether an answer cannot be left to the model alone."""
        return self.required or bool(self.strict) or not self.parallel

    def only(self, names: frozenset[str]) -> ToolWish:
        """The same with some of the tools."""
        return replace(
            self,
            listed=tuple(tool for tool in self.listed if tool["function"]["name"] in names),
            schemas={name: schema for name, schema in self.schemas.items() if name in names},
            strict=self.strict & names,
        )


NO_TOOLS = ToolWish()


def read_tools(fields: Fields, flat: bool = False) -> ToolWish:
    """`tools`, `tool_choice` and `parallel_tool_calls`; raises `ApiError`.

    `flat`: a definition and a choice have their name beside their type, as `/v1/responses` wants it.
    """
    for old, new in (("functions", "tools"), ("function_call", "tool_choice")):
        if fields.peek(old) is not None:
            raise invalid(f"{old} is the form before {new}: give {new} instead", old, "unsupported_value")
    given = fields.take("tools")
    if given is not None and not isinstance(given, list):
        raise fields.wrong("tools", "a list of tools", given)
    tools = [_tool(one, f"tools[{at}]", flat) for at, one in enumerate(given or [])]
    if len(tools) > MOST_TOOLS:
        raise invalid(f"tools has {len(tools)} entries, and at most {MOST_TOOLS} are taken", "tools")
    names = [tool["name"] for tool, _ in tools]
    for name in names:
        if names.count(name) > 1:
            raise invalid(f"tools has {name!r} twice", "tools")
    wish = ToolWish(
        listed=tuple({"type": "function", "function": tool} for tool, _ in tools),
        schemas={tool["name"]: tool["parameters"] for tool, _ in tools},
        strict=frozenset(tool["name"] for tool, strict in tools if strict),
        parallel=fields.flag("parallel_tool_calls", True),
    )
    return _choose(wish, fields, flat)


def _tool(given: Any, where: str, flat: bool) -> tuple[dict[str, Any], bool]:
    """A definition as templates take it, and whether it is strict, which is nothing for a model to read."""
    outer = _object(given, where)
    _check_type(outer, where, flat)
    inner = outer if flat else outer.inner("function")
    name = None if inner is None else inner.text("name")
    if inner is None or name is None:
        missing = outer.path("function") if inner is None else inner.path("name")
        raise invalid(f"{missing} is missing: {FORMS[flat]}", missing, "missing_field")
    if not _NAME.fullmatch(name):
        wanted = "1 to 64 letters, digits, '_', '-' or '.'"
        raise invalid(f"{inner.path('name')} must be {wanted}, not {shown(name)}", inner.path("name"))
    tool: dict[str, Any] = {"name": name}
    description, strict = inner.text("description"), inner.flag("strict")
    if description is not None:
        tool["description"] = description
    tool["parameters"] = inner.mapping("parameters") or {"type": "object", "properties": {}}
    inner.finish()
    outer.finish()
    return tool, strict


def _choose(wish: ToolWish, fields: Fields, flat: bool) -> ToolWish:
    choice = fields.take("tool_choice")
    if choice is None or choice == "auto":
        return wish
    if choice == "none":
        return NO_TOOLS
    if not wish:
        raise invalid("tool_choice wants tools beside it", "tool_choice")
    if choice == "required":
        return replace(wish, required=True)
    if not isinstance(choice, dict):
        raise fields.wrong("tool_choice", "none, auto, required or an object that names a function", choice)
    inner = Fields(choice, "tool_choice.")
    if choice.get("type") == "allowed_tools":
        return _allowed(wish, inner, flat)
    name = _named(inner, "tool_choice", flat)
    return replace(wish.only(_known(wish, [name])), required=True, parallel=False)


def _allowed(wish: ToolWish, outer: Fields, flat: bool) -> ToolWish:
    outer.take("type")
    inner = outer if flat else outer.inner("allowed_tools")
    if inner is None:
        raise invalid("tool_choice.allowed_tools is missing", "tool_choice.allowed_tools")
    required = inner.choice("mode", ("auto", "required"), "auto") == "required"
    given, where = inner.take("tools"), inner.path("tools")
    if not isinstance(given, list) or not given:
        raise inner.wrong("tools", "a list of tools, not empty", given)
    names = [_named(_object(one, f"{where}[{at}]"), f"{where}[{at}]", flat) for at, one in enumerate(given)]
    inner.finish()
    outer.finish()
    return replace(wish.only(_known(wish, names)), required=required)


def _check_type(given: Fields, where: str, flat: bool) -> None:
    kind = given.text("type")
    if kind is None:
        raise invalid(f"{where}.type is missing: {FORMS[flat]}", f"{where}.type", "missing_field")
    if kind != "function":
        raise invalid(f"{where}.type must be 'function', not {shown(kind)}", f"{where}.type", "unsupported_value")


def _named(given: Fields, where: str, flat: bool) -> str:
    _check_type(given, where, flat)
    inner = given if flat else given.inner("function")
    name = None if inner is None else inner.text("name")
    if name is None:
        path = f"{where}.name" if flat else f"{where}.function.name"
        raise invalid(f"{path} is missing", path)
    given.finish()
    return name


def _known(wish: ToolWish, names: list[str]) -> frozenset[str]:
    for name in names:
        if name not in wish.schemas:
            known = ", ".join(wish.schemas)
            raise invalid(f"tool_choice names {shown(name)}, which is none of the tools: {known}", "tool_choice")
    return frozenset(names)


def _object(given: Any, where: str) -> Fields:
    if isinstance(given, dict):
        return Fields(given, f"{where}.")
    raise invalid(f"{where} must be an object, not {shown(given)}", where)
