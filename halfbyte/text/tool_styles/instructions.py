"""What models are told of tools where their chat template knows nothing of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def tagged_instructions(tools: Sequence[Any]) -> str:
    """In the manner of Hermes: calls stand between tags."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return (
        "You may call functions to help the user. These are their signatures, one a line:\n"
        f"<tools>\n{listed}\n</tools>\n"
        "To call a function, answer with its name and arguments as JSON between tool_call tags, and nothing else:\n"
        '<tool_call>\n{"name": "FUNCTION", "arguments": {"ARGUMENT": VALUE}}\n</tool_call>\n'
        "Each call stands between tags of its own. Call none where you can answer without."
    )


def json_instructions(tools: Sequence[Any]) -> str:
    """A call is JSON and nothing else."""
    listed = json.dumps([tool["function"] for tool in tools], ensure_ascii=False)
    return (
        f"You have access to these functions:\n{listed}\n"
        "To call one, answer with nothing but JSON of the form\n"
        '{"name": "FUNCTION", "parameters": {"ARGUMENT": VALUE}}\n'
        "Call none where you can answer without."
    )
