"""Every plug-in file is in its visible table, and every entry of a table resolves."""

from __future__ import annotations

import ast
import re

import pytest

from halfbyte.errors import UnsupportedError
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


def defines(path, function: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in parse(path).body)


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


def test_every_architecture_file_is_in_the_table():
    from halfbyte.model.archs import ARCHS

    assert modules_in("model/archs") == modules_named(ARCHS)
    assert all(ARCHS[name] is not None for name in ARCHS)


def test_every_tool_style_file_is_in_the_table():
    from halfbyte.text.tool_styles import TOOL_STYLES

    assert modules_that_make("text/tool_styles", "ToolStyle") == modules_named(TOOL_STYLES)


def test_every_tokenizer_file_is_in_the_table():
    from halfbyte.text.build import TOKENIZERS

    builders = {name for name in modules_in("text") if defines(PACKAGE / "text" / f"{name}.py", "build")}
    assert builders == modules_named(TOKENIZERS)
    assert all(callable(TOKENIZERS[name]) for name in TOKENIZERS)


def test_every_command_file_is_in_the_table_with_a_summary():
    from halfbyte.cli.main import COMMANDS, SUMMARY

    assert modules_that_make("cli", "Command") == modules_named(COMMANDS)
    assert {name: COMMANDS[name].name for name in COMMANDS} == {name: name for name in SUMMARY}


def test_every_instruction_set_has_its_lowering_and_every_lowering_a_user():
    from halfbyte.cpu_kernels.isa import ISAS

    assert {isa.lowering for isa in ISAS.values()} == modules_in("cpu_kernels/lowerings")
    assert all(ISAS[name].name == name for name in ISAS)


def test_every_sampling_step_is_in_the_table_and_runs_by_default():
    from halfbyte.runtime.sampling.chain import SAMPLERS
    from halfbyte.runtime.sampling.params import SamplingParams

    assert SamplingParams().samplers == tuple(SAMPLERS)


def test_every_unknown_name_is_an_error_that_lists_the_known_ones():
    from halfbyte.cli.main import COMMANDS
    from halfbyte.model.archs import ARCHS
    from halfbyte.text.build import TOKENIZERS

    for table in (ARCHS, TOKENIZERS, COMMANDS):
        with pytest.raises(UnsupportedError, match=rf"unknown {re.escape(table.what)} 'zzz'; known: "):
            table["zzz"]


def test_an_unknown_name_close_to_a_known_one_is_told_so():
    from halfbyte.quant import FORMATS

    with pytest.raises(UnsupportedError, match=r"did you mean 'q4_k'.*known: f32"):
        FORMATS["q4_kk"]
