"""The package's own source files, parsed, for the tests that read code instead of running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "halfbyte"


class Import(NamedTuple):
    line: int
    module: str  # absolute and dotted; for `from m import n` both `m` and `m.n` are listed


@cache
def python_files(*folders: str) -> tuple[Path, ...]:
    return tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    """Path from the repository root with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> str:
    module = module_of(path)
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def absolute(package: str, level: int, module: str) -> str:
    """The dotted name that `from <level dots><module> import ...` means inside `package`."""
    if level == 0:
        return module
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, module] if module else base)


def imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import statement, those inside functions and under TYPE_CHECKING included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(package, node.level, node.module or "")
            yield Import(node.lineno, module)
            yield from (Import(node.lineno, f"{module}.{alias.name}") for alias in node.names)


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = dotted(node.value)
        return f"{left}.{node.attr}" if left else ""
    return ""
