"""What the README and the pages beside it say is so."""

from __future__ import annotations

import re

import pytest

from tests.source_tree import ROOT, python_files

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def row(title: str) -> set[str]:
    """The code words of the table row that `title` starts."""
    line = next(line for line in README.splitlines() if line.startswith(f"| {title} |"))
    return set(re.findall(r"`([\w-]+)`", line))


def test_the_python_example_runs(tmp_path, capsys):
    from tests.model.tiny import tiny_model

    (example,) = blocks("python")
    assert example.count('"smollm2-135m"') == 1
    exec(example.replace('"smollm2-135m"', repr(str(tiny_model(tmp_path)))), {})
    assert capsys.readouterr().out.split()[-1] in {"stop", "length"}


def test_the_examples_of_the_engine_run(tmp_path, capsys):
    from tests.model.tiny import tiny_model

    page = (ROOT / "docs/engine.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    path = repr(str(tiny_model(tmp_path)))
    for example in examples:
        assert example.count('"smollm2-135m"') == 1
        exec(example.replace('"smollm2-135m"', path), {})
    assert len(examples) == 2
    assert "tokens are cached" in capsys.readouterr().out


def test_the_example_of_adapters_runs(tmp_path, capsys, monkeypatch):
    from tests.model.adapters import make_adapter
    from tests.model.tiny import tiny_model

    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("pirate", "formal")):
        make_adapter(tmp_path / f"{name}.gguf", {"blk.0.attn_q.weight": (64, 64)}, seed=seed)
    page = (ROOT / "docs/adapters.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example.count('"smollm2-135m"') == 1
    exec(example.replace('"smollm2-135m"', repr(str(tiny_model(tmp_path)))), {})
    assert capsys.readouterr().out.splitlines()[-1] == "pirate=1, formal=0.5"


def test_the_two_commands_are_what_ci_runs():
    steps = [step for block in blocks("") for line in block.splitlines() for step in line.split(" && ")]
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert steps == [
        "pip install .",
        "halfbyte chat",
        'echo "What is the capital of France?" | halfbyte chat',
        "pip install '.[test]'",
        "pytest",
    ]
    assert [step for step in steps if step not in script] == []


def test_every_command_is_listed():
    from halfbyte.cli.main import COMMANDS

    assert re.findall(r"^\| `halfbyte (\w+)", README, re.MULTILINE) == list(COMMANDS)


def test_every_architecture_is_listed():
    from halfbyte.model.archs import ARCHS

    assert row("architectures") == set(ARCHS)


def test_every_format_with_kernels_of_its_own_is_listed():
    from halfbyte.cpu_kernels.packed import FAMILY_OF
    from halfbyte.quant import FORMATS

    assert row("**formats with compiled kernels**") == set(FAMILY_OF) <= set(FORMATS)


def test_every_instruction_set_is_listed():
    from halfbyte.cpu_kernels.isa import ISAS

    assert row("**instruction sets**") == set(ISAS)


def test_every_table_an_addition_goes_into_exists():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tables = set(re.findall(r"`([A-Z]+)`", page))
    sources = [path.read_text(encoding="utf-8") for path in python_files("halfbyte")]
    assert len(tables) > 5
    assert [t for t in tables if not any(re.search(rf"^{t}\b.* = ", s, re.MULTILINE) for s in sources)] == []


def test_every_short_name_is_listed():
    from halfbyte.hub import NAMES

    line = next(line for line in README.splitlines() if line.startswith("| short name |"))
    assert re.findall(r"`([^`]+)`", line) == list(NAMES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_the_map_is_short_and_names_what_exists():
    text = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 60
    folders = re.findall(r"^\| `(\w+)/` \|.*\| (.*) \|$", text, re.MULTILINE)
    assert folders
    for folder, starts in folders:
        files = re.findall(r"`([\w/]+\.py)`", starts)
        assert files, folder
        assert [file for file in files if not (ROOT / "halfbyte" / folder / file).is_file()] == []


def test_the_map_and_the_layering_test_agree():
    from tests.test_layers import MAY_IMPORT

    text = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)/` \|[^|]*\| ([^|]*) \|", text, re.MULTILINE))
    for folder, allowed in rows.items():
        named = set(re.findall(r"`([\w.]+)`", allowed))
        assert named <= MAY_IMPORT[folder]
        assert named == MAY_IMPORT[folder] or "all above" in allowed, folder
