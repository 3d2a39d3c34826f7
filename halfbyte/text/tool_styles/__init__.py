"""How families of models call tools: reading the calls in an answer, and telling a model of tools."""

from collections.abc import Iterable

from ...registry import Registry
from .call_parser import CallParser
from .deltas import Call, CallArguments, CallEnd, CallStart, Content, Delta
from .style import ToolStyle

TOOL_STYLES: Registry[ToolStyle] = Registry(
    "tool style",
    __package__,
    {
        "mistral-named": ".mistral:NAMED",
        "mistral": ".mistral:LISTED",
        "phi4": ".listed:PHI4",
        "granite": ".listed:GRANITE",
        "harmony": ".harmony:STYLE",
        "lfm2": ".lfm2:STYLE",
        "qwen-coder": ".qwen_coder:STYLE",
        "function-gemma": ".gemma:FUNCTION",
        "gemma4": ".gemma:GEMMA4",
        "llama3": ".llama3:STYLE",
        "hermes": ".hermes:STYLE",
        "gemma": ".gemma:STYLE",
    },
)
"""In the order in which a template is searched for what shows them."""

VARIABLES = ("tools", "xml_tools")
"""Names under which templates want tools."""


def find_tool_style(source: str, variables: Iterable[str]) -> tuple[ToolStyle, str | None]:
    """The style that a template's source shows, and the variable of it that takes tools.

    None where it takes none: then a style is chosen that can be explained to the model in words.
    """
    known = frozenset(variables)
    variable = next((name for name in VARIABLES if name in known), None)
    for style in TOOL_STYLES.values():
        if any(text in source for text in style.shown_by) and (variable or style.instructions):
            return style, variable
    return TOOL_STYLES["hermes"], variable


__all__ = [
    "TOOL_STYLES",
    "Call",
    "CallArguments",
    "CallEnd",
    "CallParser",
    "CallStart",
    "Content",
    "Delta",
    "ToolStyle",
    "find_tool_style",
]
