"""The examples beside the desktop app, run over a tiny model."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json

import pytest

import halfbyte
from examples import asyncio_chat
from tests.model.tiny import make_tiny_gguf
from tests.source_tree import ROOT


@pytest.fixture
def path(tmp_path, monkeypatch):
    real = halfbyte.load
    monkeypatch.setattr(halfbyte, "load", lambda model, **options: real(model, backend="reference", **options))
    return str(make_tiny_gguf(tmp_path / "tiny.gguf", n_layers=1))


def test_several_questions_of_one_event_loop(path):
    lines = asyncio.run(asyncio_chat.main(path))
    assert [line.partition("\n")[0] for line in lines] == asyncio_chat.QUESTIONS
    assert all(line.partition("\n")[2].strip() for line in lines)


def test_the_cells_of_the_notebook_run(path, capsys):
    book = json.loads((ROOT / "examples/notebook.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], len({cell["id"] for cell in book["cells"]})) == (4, len(book["cells"]))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in book["cells"])
    assert sum(cell.count('"smollm2-135m"') for cell in cells) == 1

    async def run():
        names = {}
        for cell in cells:
            source = cell.replace('"smollm2-135m"', repr(path))
            made = eval(compile(source, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.isawaitable(made):
                await made

    asyncio.run(run())
    said = capsys.readouterr().out
    assert " MB" in said
    assert "Name a colour. ->" in said
    assert " yes\n" in said or " no\n" in said
