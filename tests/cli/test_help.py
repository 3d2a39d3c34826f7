"""Help is documentation: it starts with an example, and no option leaves a question open."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from halfbyte._version import __version__
from halfbyte.cli.command import Command
from halfbyte.cli.main import COMMANDS, SUMMARY
from halfbyte.cli.parser import help_text, parse
from halfbyte.errors import ConfigError

OPTIONS = [(name, option) for name in COMMANDS for option in COMMANDS[name].every_option]
option_of_every_command = pytest.mark.parametrize(
    ("name", "option"), OPTIONS, ids=[f"{name} {option.flag}" for name, option in OPTIONS]
)
every_command = pytest.mark.parametrize("name", COMMANDS)


def test_every_command_has_its_line_in_the_overview(run) -> None:
    assert SUMMARY.keys() == COMMANDS.keys()
    shown = run("--help")
    assert shown.code == 0
    assert shown.out.startswith("Example: halfbyte chat\n")
    for name in COMMANDS:
        assert re.search(rf"^  {name} +{re.escape(SUMMARY[name])}$", shown.out, re.M)


@every_command
def test_help_starts_with_an_example_that_parses(run, name: str) -> None:
    shown = run(name, "--help")
    assert (shown.code, shown.err) == (0, "")
    first = shown.out.partition("\n")[0]
    program, command, *words = shlex.split(first.removeprefix("Example: "))
    assert (program, command) == ("halfbyte", name)
    assert parse(COMMANDS[name], words) is not None


@every_command
def test_help_wins_over_missing_arguments_and_stands_in_any_place(run, name: str) -> None:
    assert run(name, "-h").out == run(name, "model", "--help").out == help_text(COMMANDS[name]) + "\n"


@every_command
def test_a_command_has_few_options_and_no_option_twice(name: str) -> None:
    command: Command = COMMANDS[name]
    assert command.name == name
    assert len(command.options) <= 12
    flags = [flag for option in command.every_option for flag in (option.flag, option.short) if flag]
    assert len(set(flags)) == len(flags)


@option_of_every_command
def test_an_option_states_unit_range_and_default(name: str, option) -> None:
    facts = re.search(r"\(([^()]+)\)$", option.help)
    assert facts, option.help
    *first, default = facts[1].split("; ")
    assert default.startswith("default ")
    assert len(default) > len("default ")
    if option.kind is bool:
        assert (first, default) == ([], "default off")
        return
    unit, _, allowed = first[0].partition(", ")
    assert unit
    if option.kind is not str:
        assert re.fullmatch(r"[\d.]+ (or more|to [\d.]+)", allowed)


@pytest.mark.parametrize("name", ["generate", "chat"])
def test_every_sampling_parameter_is_an_option_or_a_setting_with_range_and_default(name: str) -> None:
    from halfbyte.runtime.sampling.params import SamplingParams

    command = COMMANDS[name]
    rows = dict(command.settings())
    assert {option.dest for option in command.options} | rows.keys() >= SamplingParams.__dataclass_fields__.keys()
    shown = re.sub(r"\s+", " ", help_text(command))
    for setting, about in rows.items():
        assert f"{setting} {about}" in shown
        assert re.search(r"\(.*default .+\)$", about)


@pytest.mark.parametrize("name", ["generate", "chat"])
def test_every_keyword_of_load_is_explained_as_load_knows_it(name: str) -> None:
    from halfbyte.cli.loading import KEYWORDS
    from halfbyte.runtime.config import LoadConfig

    assert KEYWORDS.keys() <= LoadConfig.__dataclass_fields__.keys()
    shown = re.sub(r"\s+", " ", help_text(COMMANDS[name]))
    for keyword, about in COMMANDS[name].loading():
        assert f"{keyword} {about}" in shown
        default = LoadConfig.__dataclass_fields__[keyword].default
        words = re.search(r"default (.+)\)$", about)[1]
        assert default is None or words == str(default)


def test_keywords_of_load_are_read_from_text() -> None:
    from halfbyte.cli.loading import loading

    assert loading(["kv-memory=0.5", "max_draft = 3", "disk_cache=a=b"]) == {
        "kv_memory": 0.5,
        "max_draft": 3,
        "disk_cache": "a=b",
    }
    assert loading(["kv_memory=2GB"]) == {"kv_memory": "2GB"}
    for wrong in ("kv_memory", "kv_memory=", "kv_memry=1", "max_draft=x"):
        with pytest.raises(ConfigError):
            loading([wrong])


@option_of_every_command
def test_an_option_is_in_the_help_and_its_default_is_the_one_used(name: str, option) -> None:
    command = COMMANDS[name]
    assert option.help in re.sub(r"\s+", " ", help_text(command))
    values = parse(command, [argument.name for argument in command.arguments])
    assert getattr(values, option.dest) == (False if option.kind is bool else option.default)
    if option.default is not None:
        assert f"default {option.default:g}" in option.help


@option_of_every_command
def test_the_ends_of_a_range_are_allowed_and_what_lies_beyond_is_not(run, name: str, option) -> None:
    if option.low is None:
        return
    command = COMMANDS[name]
    words = [argument.name for argument in command.arguments]
    for value in (option.low, option.high):
        if value is not None:
            assert getattr(parse(command, [*words, option.flag, str(value)]), option.dest) == value
    beyond = [str(option.low - 1), "nan", "inf", "one", ""]
    beyond += [str(option.high + 1)] if option.high is not None else []
    beyond += ["1.5"] if option.kind is int else []
    for text in beyond:
        refused = run(name, "x", f"{option.flag}={text}")
        assert refused.code == 2
        assert option.flag in refused.err
        assert option.range in refused.err


def test_the_version(run) -> None:
    assert run("--version").out == f"halfbyte {__version__}\n"


def test_help_imports_no_more_than_it_says() -> None:
    code = (
        "import sys; from halfbyte.cli.main import main; main(['--help']); main(['generate', '--help'])\n"
        "heavy = {'numpy', 'rich', 'prompt_toolkit', 'huggingface_hub', 'platformdirs', 'halfbyte.hub'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
