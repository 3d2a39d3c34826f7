"""Size budgets. A file or function over budget holds a second noun: split it."""

from __future__ import annotations

import ast

import pytest

from tests.source_tree import name_of, parse, python_files

FILE_LINES = 300
ARCH_LINES = 120
FUNCTION_LINES = 40
KERNEL_LINES = 60

# Path, or path::function, to the reason why it may be longer.
EXCUSED: dict[str, str] = {}

CODE = python_files("halfbyte", "bench")
ALL = python_files("halfbyte", "bench", "tests")


def is_data(tree: ast.Module) -> bool:
    """Nothing but a docstring, imports and assigned literals."""
    plain = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    return all(isinstance(node, plain) for node in tree.body)


def functions(tree: ast.Module):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_file_fits_its_budget(path):
    name = name_of(path)
    budget = ARCH_LINES if name.startswith("halfbyte/model/archs/") else FILE_LINES
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= budget or is_data(parse(path)) or name in EXCUSED, f"{name}: {lines} lines, budget {budget}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_functions_fit_their_budget(path):
    name = name_of(path)
    budget = KERNEL_LINES if name.startswith(("halfbyte/cpu_kernels/", "halfbyte/gpu_offload/")) else FUNCTION_LINES
    long = {
        f"{name}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for node in functions(parse(path))
        if node.end_lineno - node.lineno + 1 > budget and f"{name}::{node.name}" not in EXCUSED
    }
    assert long == {}


def test_excuses_are_still_needed():
    for excuse in EXCUSED:
        path = next(path for path in ALL if name_of(path) == excuse.partition("::")[0])
        named = excuse.partition("::")[2]
        spans = [node.end_lineno - node.lineno + 1 for node in functions(parse(path)) if node.name == named]
        assert spans and max(spans) > FUNCTION_LINES if named else path.read_text().count("\n") > ARCH_LINES


def test_a_table_is_data_and_a_function_is_not():
    assert is_data(ast.parse('"""Doc."""\nimport numpy\nTABLE = (1, 2)\nMORE: dict = {}'))
    assert not is_data(ast.parse("TABLE = (1, 2)\ndef look(i): return TABLE[i]"))
