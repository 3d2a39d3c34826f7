"""`read_python_calls`: calls in Python's form, with named arguments that are literals."""

from __future__ import annotations

import ast
import json

from .deltas import Call

_CONSTANTS = {"true": True, "false": False, "null": None}
"""Names that models write where Python has others."""


def read_python_calls(text: str) -> list[Call]:
    """The calls of `f(a=1)`, `f.call(a=1)` or a list of these; none where the text is anything else."""
    try:
        body = ast.parse(text, mode="eval").body
        calls = body.elts if isinstance(body, (ast.List, ast.Tuple)) else [body]
        return [_call(call) for call in calls]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError
    arguments = {str(word.arg): _literal(word.value) for word in node.keywords if word.arg is not None}
    if len(arguments) < len(node.keywords):
        raise ValueError
    return Call(ast.unparse(node.func).removesuffix(".call"), json.dumps(arguments, ensure_ascii=False))


def _literal(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    return ast.literal_eval(node)
