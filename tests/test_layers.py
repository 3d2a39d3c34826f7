"""The folder table of the design, enforced: who may import whom, and what may happen in one place only."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

import pytest

from tests.source_tree import PACKAGE, absolute, dotted, imports, module_of, name_of, package_of, parse, python_files

BACKEND_CONTRACT = {"quant", "model.program", "model.backend", "model.kv_types"}
BELOW_RUNTIME = {"quant", "formats", "cpu_kernels", "gpu_offload", "model", "text"}

MAY_IMPORT: dict[str, set[str]] = {
    "quant": set(),
    "formats": {"quant"},
    "cpu_kernels": BACKEND_CONTRACT,
    "gpu_offload": BACKEND_CONTRACT,
    "model": {"quant", "formats"},
    "text": {"formats"},
    "hub": set(),
    "runtime": BELOW_RUNTIME | {"hub"},
    "tools": {"quant", "formats", "cpu_kernels", "model", "text", "hub", "runtime"},
    "server": {"runtime", "text"},
    "cli": BELOW_RUNTIME | {"hub", "runtime", "tools", "server"},
}
SHARED = {"errors", "registry", "code_file", "_version"}  # below every folder

NUMPY = {"numpy"}
MAY_USE: dict[str, set[str]] = {
    "quant": NUMPY,
    "formats": NUMPY,
    "cpu_kernels": NUMPY | {"numba", "llvmlite", "platformdirs"},
    "gpu_offload": NUMPY | {"cupy", "cupy_backends", "platformdirs"},
    "model": NUMPY,
    "text": NUMPY | {"tokenizers", "sentencepiece", "jinja2", "markupsafe"},
    "hub": {"huggingface_hub", "platformdirs"},
    "runtime": NUMPY | {"llguidance"},
    "tools": NUMPY | {"safetensors", "tokenizers", "sentencepiece", "torch"},
    "server": NUMPY | {"starlette", "uvicorn", "prometheus_client"},
    "cli": NUMPY | {"rich", "prompt_toolkit", "platformdirs"},
}

FILES = python_files("halfbyte")
# The loader hands the environment on to the processes that compile.
ENVIRONMENT_READERS = (
    *("cpu_kernels/isa.py", "cpu_kernels/object_cache.py", "cpu_kernels/loader.py", "gpu_offload/cubin_cache.py"),
    *("hub/", "cli/"),
)
COMPILERS = {"njit", "cfunc", "prange"}
COMPILER_IMPORTS = COMPILERS | {"jit", "vectorize", "guvectorize", "stencil"}


def place(path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def folder_of(path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def is_ours(module: str) -> bool:
    return module == "halfbyte" or module.startswith("halfbyte.")


def is_module(name: str) -> bool:
    path = PACKAGE.parent / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def lazy_targets(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Modules named in registry tables: strings of the form `.module:attribute`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = re.fullmatch(r"(\.*)([A-Za-z_][\w.]*):[A-Za-z_]\w*", node.value)
            if match and (match[1] or is_ours(match[2])):
                yield node.lineno, absolute(package, len(match[1]), match[2])


def edges(tree: ast.Module, package: str) -> set[tuple[int, str]]:
    """Every (line, module) of ours that a file imports, now or lazily."""
    direct = {(line, module) for line, module in imports(tree, package) if is_ours(module) and is_module(module)}
    return direct | set(lazy_targets(tree, package))


def allowed(folder: str, module: str) -> bool:
    rest = module.removeprefix("halfbyte").removeprefix(".")
    if not rest or rest.split(".")[0] in SHARED | {folder}:
        return True
    targets = MAY_IMPORT[folder]
    # Naming a package on the way to an allowed module of it is no import of the package's own names.
    return any(rest == target or rest.startswith(f"{target}.") or target.startswith(f"{rest}.") for target in targets)


def test_every_folder_has_a_row_in_the_table():
    folders = {folder_of(path) for path in FILES} - {""}
    assert folders <= MAY_IMPORT.keys() == MAY_USE.keys()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_follow_the_table(path):
    folder = folder_of(path)
    if folder:
        found = sorted(edges(parse(path), package_of(path)))
        assert [f"line {line}: {module}" for line, module in found if not allowed(folder, module)] == []


def test_root_files_reach_only_what_they_need():
    reach = {"__init__": {"runtime"}, "__main__": {"cli"}}
    for path in FILES:
        if folder_of(path):
            continue
        targets = {module.split(".")[1] for _, module in edges(parse(path), package_of(path)) if "." in module}
        assert targets - SHARED <= reach.get(path.stem, set()), name_of(path)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_third_party_packages_stay_in_their_folders(path):
    allowed_here = MAY_USE.get(folder_of(path), set())
    used = {module.split(".")[0] for _, module in imports(parse(path), package_of(path)) if module}
    assert used - sys.stdlib_module_names - {"halfbyte"} <= allowed_here


def compiles(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name == "numba" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module == "numba" and any(alias.name in COMPILER_IMPORTS for alias in node.names)
    return dotted(node).rpartition(".")[2] in COMPILERS


def test_one_file_owns_the_compiler():
    owners = {place(path) for path in FILES if any(compiles(node) for node in ast.walk(parse(path)))}
    assert owners == {"cpu_kernels/jit.py"}


def test_one_file_prints():
    printers = {
        place(path)
        for path in FILES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and dotted(node.func) == "print"
    }
    assert printers <= {"cli/terminal.py"}


def reads_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in {"environ", "getenv"} for alias in node.names)
    return dotted(node) in {"os.environ", "os.environb", "os.getenv"}


def test_few_files_read_the_environment():
    readers = {place(path) for path in FILES if any(reads_environment(node) for node in ast.walk(parse(path)))}
    assert [name for name in sorted(readers) if not name.startswith(ENVIRONMENT_READERS)] == []


def test_only_the_entry_point_imports_the_command_line():
    importers = {
        place(path)
        for path in FILES
        if folder_of(path) != "cli"
        for _, module in edges(parse(path), package_of(path))
        if module == "halfbyte.cli" or module.startswith("halfbyte.cli.")
    }
    assert importers <= {"__main__.py"}


def test_the_rules_would_notice_a_breach():
    tree = ast.parse("from ..runtime import engine\nTABLE = {'x': '..model.program:Op', 'y': '.q4_0:FORMAT'}")
    found = edges(tree, "halfbyte.quant")
    assert {module for _, module in found} >= {"halfbyte.runtime", "halfbyte.model.program", "halfbyte.quant.q4_0"}
    assert sorted(module for _, module in found if not allowed("quant", module))[0] == "halfbyte.model.program"
    assert not allowed("cpu_kernels", "halfbyte.model.spec")
    assert allowed("cpu_kernels", "halfbyte.model.program")
    assert module_of(PACKAGE / "errors.py") == "halfbyte.errors"
