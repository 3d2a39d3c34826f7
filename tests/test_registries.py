"""Every plug-in file is in its visible table, and every entry of a table resolves."""

from __future__ import annotations

import ast

import pytest

from tests.source_tree import PACKAGE, dotted, parse


def modules_in(folder: str) -> set[str]:
    return {path.stem for path in (PACKAGE / folder).glob("*.py")} - {"__init__"}


def modules_that_make(folder: str, noun: str) -> set[str]:
    """Files of a folder that call `noun(...)`."""
    return {
        name
        for name in modules_in(folder)
        for node in ast.walk(parse(PACKAGE / folder / f"{name}.py"))
        if isinstance(node, ast.Call) and dotted(node.func) == noun
    }


def modules_named(registry) -> set[str]:
    return {target.partition(":")[0].rpartition(".")[2] for target in registry._table.values()}


def test_every_block_format_file_is_in_the_table():
    from halfbyte.quant import FORMATS

    assert modules_that_make("quant", "BlockFormat") == modules_named(FORMATS)


def test_every_block_format_resolves_under_its_own_name_and_number():
    from halfbyte.quant import FORMATS, by_id

    for name in FORMATS:
        assert FORMATS[name].name == name
        assert by_id(FORMATS[name].ggml_id) is FORMATS[name]


def test_an_unknown_name_is_an_error_that_names_the_nearest():
    from halfbyte import errors
    from halfbyte.quant import FORMATS

    with pytest.raises(errors.UnsupportedError, match=r"did you mean 'q4_k'.*known: f32"):
        FORMATS["q4_kk"]
