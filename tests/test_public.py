"""The public surface is a list. Whoever changes it changes this test, and means it."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

import halfbyte
from halfbyte import errors
from tests.source_tree import PACKAGE, ROOT, imports, package_of, parse, python_files

PUBLIC = [
    "LLM",
    "AsyncStream",
    "CacheReport",
    "CancelledError",
    "CheckError",
    "Completion",
    "ConfigError",
    "ContextExceededError",
    "DeadlineExceededError",
    "Embedder",
    "FormatError",
    "HalfbyteError",
    "IncompleteAnswerError",
    "KvBudgetExceededError",
    "MemoryPlan",
    "Metrics",
    "QueueFullError",
    "RequestError",
    "ResourceError",
    "SamplingParams",
    "Score",
    "Stream",
    "StreamEvent",
    "Timings",
    "TokenLogprobs",
    "UnsupportedError",
    "__version__",
    "load",
    "load_embedder",
    "plan",
]

METHODS = [
    "achat",
    "agenerate",
    "astream",
    "astream_chat",
    "astreams",
    "astreams_chat",
    "chat",
    "close",
    "detokenize",
    "explain_cache",
    "generate",
    "info",
    "load_session",
    "logits",
    "metrics",
    "render",
    "samples",
    "save_session",
    "score",
    "stream",
    "stream_chat",
    "tokenize",
    "trace",
]


def test_the_package_offers_exactly_the_listed_names():
    assert sorted(halfbyte.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(halfbyte, name) is not None
    assert name in dir(halfbyte)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        _ = halfbyte.generat


def test_a_model_offers_exactly_the_documented_methods():
    offered = {name: value for name, value in vars(halfbyte.LLM).items() if not name.startswith("_")}
    assert sorted(offered) == METHODS
    assert all(method.__doc__ for method in offered.values())


def test_every_error_is_public_and_descends_from_one():
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert kinds <= set(halfbyte.__all__)
    assert all(issubclass(getattr(halfbyte, name), halfbyte.HalfbyteError) for name in kinds)


def test_the_error_tree_in_the_docstring_is_the_real_one():
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert set(re.findall(r"\w+Error\b", errors.__doc__.split("\n\n")[1])) == kinds


def test_types_are_offered_to_the_users_type_checker():
    assert (PACKAGE / "py.typed").is_file()


def test_the_changelog_starts_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == halfbyte.__version__


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_-]+", requirement)[0] for requirement in requirements} - {"halfbyte"}


def test_every_dependency_is_justified():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = names(project["dependencies"]).union(*map(names, project["optional-dependencies"].values()))
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    assert declared == set(re.findall(r"^\| ([A-Za-z0-9_-]+) \| .{10,} \|$", page, re.MULTILINE)) - {"package"}


def test_every_dependency_is_used_and_every_use_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    used = {
        module.split(".")[0]
        for path in python_files("halfbyte")
        for _, module in imports(parse(path), package_of(path))
    }
    third_party = used - set(sys.stdlib_module_names) - {"halfbyte", ""}
    extras = project["optional-dependencies"]
    assert all(name.startswith("cupy-cuda") for name in names(extras["cuda12"]) | names(extras["cuda13"]))
    assert third_party == names(project["dependencies"]) | names(extras["torch"]) | {"cupy", "cupy_backends"}
